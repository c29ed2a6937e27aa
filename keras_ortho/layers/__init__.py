"""Layers besides the recurrent ones."""

from keras_ortho.layers.bnp_dense import BNPDense
from keras_ortho.layers.carried_state import CarriedState
from keras_ortho.layers.svd_dense import SVDDense

__all__ = [
    "BNPDense",
    "CarriedState",
    "SVDDense",
]
