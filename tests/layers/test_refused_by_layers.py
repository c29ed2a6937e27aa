"""What the layers refuse, and what they say about it."""

import re

import keras
import numpy as np
import pytest
from keras import layers

from keras_ortho import ORNN, BNPDense, OrthoDense, SVDDense
from keras_ortho import parametrizations as sets
from keras_ortho.layers import STFT, CarriedState, InverseSTFT, TrainedInitialState

FULL = {"return_sequences": True, "return_state": True}


def built(layer, *shape):
    layer.build(shape)
    return layer


def svd(**kwargs):
    return built(SVDDense(3, **kwargs), None, 2)


def ortho(units=3, parametrization=None, **kwargs):
    return OrthoDense(units, parametrization or sets.Householder(), **kwargs)


ERRORS = {
    **{
        f"`{name}` must": lambda name=name, value=value: SVDDense(
            **{"units": 7, name: value}
        )
        for name, value in {
            "units": 2.5,
            "reflections": (1, 2, 3),
            "spectral_margin": -0.1,
            "spectral_center": 0.0,
        }.items()
    },
    "between 1 and 7": lambda: SVDDense(7, reflections=8),
    "between 1 and 2": lambda: svd(reflections=3),
    "must not be empty": lambda: built(SVDDense(3), None, 0),
    "input of `SVDDense` must be known": lambda: built(SVDDense(3), None, None),
    "`matrix` must have the shape": lambda: svd().set_kernel_matrix(np.eye(3)),
    "lie between 0.9 and 1.1": (
        lambda: svd(spectral_margin=0.1).set_kernel_matrix(2 * np.eye(3)[:2])
    ),
    "`reflections` must be 2": (
        lambda: svd(reflections=1).set_kernel_matrix(np.ones((2, 3)))
    ),
    "must be 2": lambda: svd(reflections=1, kernel_initializer="glorot_uniform"),
    "`kernel_initializer` must have the shape": (
        lambda: svd(kernel_initializer=np.eye(3))
    ),
    "has no weights yet": lambda: SVDDense(3).set_kernel_matrix(np.eye(3)),
    "`epsilon` must": lambda: BNPDense(3, 0),
    "`epsilon` must be": lambda: BNPDense(3, None),
    "always has a bias": lambda: BNPDense(3, use_bias=False),
    "`units` must be": lambda: BNPDense(0),
    "`parametrization` must be": lambda: ortho(parametrization="cayley"),
    "must make real matrices": (
        lambda: ortho(parametrization=sets.ScaledCayleyUnitary())
    ),
    "must return skew entries": lambda: ortho(
        parametrization=sets.ScaledCayley(), kernel_initializer="normal_reflectors"
    ),
    "order 5, the larger": (
        lambda: built(ortho(parametrization=sets.Householder(6)), None, 5)
    ),
    "of order 10": lambda: built(
        ortho(10, sets.Heads(sets.ScaledCayley(), 3)), None, 4
    ),
    "`OrthoDense` must be known": lambda: built(ortho(), None, None),
    "`layer` must be a recurrent layer with": (
        lambda: CarriedState(layers.GRU(2, return_state=True))
    ),
    "`layer` must be a recurrent layer with `return_sequences=True`": (
        lambda: CarriedState(layers.GRU(2, **FULL, stateful=True))
    ),
    "and `stateful=False`": (
        lambda: CarriedState(layers.Bidirectional(layers.GRU(2, **FULL)))
    ),
    "batch size must be known": (
        lambda: CarriedState(layers.GRU(2, **FULL))(keras.Input((4, 2)))
    ),
    "`initializer` must have the shape": lambda: built(
        TrainedInitialState(layers.LSTM(3), initializer=np.ones(5)), None, 5, 2
    ),
    "`layer` must be a recurrent": lambda: TrainedInitialState(layers.Dense(3)),
    "that is not stateful": lambda: TrainedInitialState(layers.LSTMCell(3)),
    "is not stateful": lambda: TrainedInitialState(layers.LSTM(3, stateful=True)),
    "must not itself train": lambda: TrainedInitialState(ORNN(4)),
    "`trainable_initial_state` to `False`": lambda: TrainedInitialState(
        layers.RNN([layers.LSTMCell(3), ORNN(4).cell])
    ),
    "`frame_length` must be an integer": lambda: STFT("a", 128),
    "`hop_length` must be an integer": lambda: InverseSTFT(256, 1.5),
    "`frame_length` must be even": lambda: InverseSTFT(255, 128),
    "`hop_length` must divide `frame_length`": lambda: STFT(256, 100),
    "`hop_length` must be less": lambda: InverseSTFT(8, 8),
    "`spectrum` must": lambda: InverseSTFT()(np.ones((2, 5, 128, 2), "float32")),
    "`spectrum` must have": lambda: InverseSTFT()(keras.KerasTensor((5, 129, 2))),
    "`waveform` must": lambda: STFT()(np.ones(300)),
    "`waveform` must have": lambda: STFT()(keras.KerasTensor((2, 300, 1))),
    "`like` must have the shape": lambda: InverseSTFT()(
        keras.KerasTensor((2, 5, 129, 2)), keras.KerasTensor((300,))
    ),
    "`like` must have as many": lambda: InverseSTFT()(
        np.ones((2, 5, 129, 2), "float32"), np.ones((3, 200))
    ),
}


@pytest.mark.backends
@pytest.mark.parametrize("message", ERRORS)
def test_errors(message):
    with pytest.raises(ValueError, match=f"(?s){re.escape(message)}.*Received: "):
        ERRORS[message]()


def test_another_backend_says_so(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "numpy")
    with pytest.raises(NotImplementedError, match="Received: KERAS_BACKEND=numpy"):
        BNPDense(3)
