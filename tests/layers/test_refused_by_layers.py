"""What the layers refuse, and what they say about it."""

import re

import keras
import numpy as np
import pytest
from keras import layers

from keras_ortho import BNPDense, OrthoDense, SVDDense
from keras_ortho import parametrizations as sets
from keras_ortho.layers import STFT, CarriedState, InverseSTFT, TrainedInitialState

GRU = layers.GRU(2, return_sequences=True, return_state=True)


def built(layer, *shape):
    layer.build(shape)
    return layer


def svd(**kwargs):
    return built(SVDDense(3, **kwargs), None, 2)


TWO = 2 * np.eye(2, 3)
ERRORS = {
    "`units` must be": lambda: BNPDense(0),
    "`epsilon` must": lambda: BNPDense(3, 0),
    "always has a bias": lambda: BNPDense(3, use_bias=False),
    "must be real": lambda: BNPDense(3)(np.ones((2, 4), "complex64")),
    "input of `SVDDense` must be known": lambda: built(SVDDense(3), None, None),
    "`reflections` must": lambda: svd(reflections=(1, 2, 3)),
    "between 1 and 2": lambda: svd(reflections=3),
    "`spectral_margin` must": lambda: SVDDense(7, spectral_margin=-0.1),
    "`matrix` must have the shape": lambda: svd().set_kernel_matrix(np.eye(3)),
    "values between 0.9": lambda: svd(spectral_margin=0.1).set_kernel_matrix(TWO),
    "must be 2": lambda: svd(reflections=1, kernel_initializer="glorot_uniform"),
    "has no weights yet": lambda: SVDDense(3).set_kernel_matrix(np.eye(3)),
    "`parametrization` must be": lambda: OrthoDense(3, "cayley"),
    "must make real matrices": lambda: OrthoDense(3, sets.ScaledCayleyUnitary()),
    "between 1 and 5": lambda: built(OrthoDense(3, sets.Householder(6)), None, 5),
    "a recurrent layer with": lambda: CarriedState(layers.GRU(2, return_state=True)),
    "and `stateful=False`": lambda: CarriedState(layers.Bidirectional(GRU)),
    "batch size must be known": lambda: CarriedState(GRU)(keras.Input((4, 2))),
    "that is not stateful": lambda: TrainedInitialState(layers.LSTM(3, stateful=True)),
    "`frame_length` must be even": lambda: InverseSTFT(255, 128),
    "`hop_length` must divide `frame_length`": lambda: STFT(256, 100),
}


@pytest.mark.backends
@pytest.mark.parametrize("message", ERRORS)
def test_errors(message):
    with pytest.raises(ValueError, match=f"(?s){re.escape(message)}.*Received: "):
        ERRORS[message]()
