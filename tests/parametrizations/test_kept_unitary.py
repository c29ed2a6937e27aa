"""The warning of an optimizer that does not keep a unitary matrix unitary."""

import warnings

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import FullURNN
from keras_ortho.optimizers import StiefelDescent, paper_optimizer
from keras_ortho.parametrizations import orthogonality_error

pytestmark = pytest.mark.backends

X = np.random.default_rng(0).normal(size=(8, 4, 2)).astype("float32")
WARNING = "does not keep .* unitary.*paper_optimizer.*StiefelDescent"


def make_model():
    return keras.Sequential([keras.Input((4, 2)), FullURNN(3), keras.layers.Dense(1)])


def fit(model, optimizer):
    """Trains two steps of a new optimizer, and returns the warnings of it."""
    model.compile(optimizer, "mse")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, X[:, 0, :1], batch_size=4, verbose=0)
    return [str(w.message) for w in caught if "unitary" in str(w.message)]


@pytest.mark.slow
def test_fit_warns_of_what_leaves_the_manifold():
    model = make_model()
    assert not fit(model, paper_optimizer())
    error = orthogonality_error(model.layers[0].recurrent_matrix())
    assert error < 100 * np.finfo("float32").eps
    # Also where the other was there before, and within it.
    for wrong in ("adam", paper_optimizer(unitary=keras.optimizers.SGD(0.1))):
        assert fit(model, wrong)  # One for each time the step is traced.
    assert orthogonality_error(model.layers[0].recurrent_matrix()) > 100 * error
    model = make_model()
    model.layers[0].cell.recurrent_unitary.trainable = False
    assert not fit(model, "sgd")


@pytest.mark.slow_on_jax
def test_what_wraps_the_right_one_is_right():
    unitary = StiefelDescent(0.1, gradient_accumulation_steps=2)
    optimizer = paper_optimizer(unitary=unitary)
    scaled = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=2.0)
    assert not fit(make_model(), scaled)


def test_a_step_of_ones_own():
    layer = FullURNN(3)
    layer(X)
    matrix = layer.cell.recurrent_unitary
    gradient = ops.ones(matrix.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        StiefelDescent(0.1).apply([gradient], [matrix])
    with pytest.warns(UserWarning, match=WARNING):
        keras.optimizers.SGD(0.1).apply([gradient], [matrix])
