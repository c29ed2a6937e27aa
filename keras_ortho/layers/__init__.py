"""Dense layers, STFT layers and wrappers of recurrent layers."""

from keras_ortho.layers.bnp_dense import BNPDense
from keras_ortho.layers.carried_state import CarriedState
from keras_ortho.layers.dense import OrthoDense
from keras_ortho.layers.parametrized_layer import ParametrizedLayer, parametrize
from keras_ortho.layers.stft import STFT, InverseSTFT
from keras_ortho.layers.svd_dense import SVDDense
from keras_ortho.layers.trained_initial_state import TrainedInitialState

__all__ = [
    "STFT",
    "BNPDense",
    "CarriedState",
    "InverseSTFT",
    "OrthoDense",
    "ParametrizedLayer",
    "SVDDense",
    "TrainedInitialState",
    "parametrize",
]
