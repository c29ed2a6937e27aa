"""When ENRNN divides its short-term matrix: `test_equations.py` has its equations."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import ENRNN, ENRNNCell
from keras_ortho.initializers import ScaledRotations
from tests.cells.building import built
from tests.gradients import traced
from tests.saving import reloaded

pytestmark = pytest.mark.backends

EPS32, EPS64 = np.finfo("float32").eps, np.finfo("float64").eps
X, Y = np.ones((2, 3, 2), "float32"), np.zeros((2, 7), "float32")


def radius_of(matrix):
    return np.abs(np.linalg.eigvals(ops.convert_to_numpy(matrix))).max()


def set_radius(layer, radius):
    matrix = np.random.default_rng(0).normal(size=(3, 3))
    layer.cell.short_term_matrix.assign(matrix * radius / radius_of(matrix))


def short_term(layer):
    return ops.convert_to_numpy(layer.cell.recurrent_matrix())[4:, 4:]


def is_on(layer):
    return bool(ops.convert_to_numpy(layer.cell.normalize))


def is_divided(layer):
    return radius_of(short_term(layer)) == pytest.approx(1, abs=float(100 * EPS32))


def fit(layer, **kwargs):
    model = keras.Sequential([keras.Input((3, 2)), layer])
    # A rate of 0 leaves the matrix as it is.
    model.compile(keras.optimizers.SGD(0.0), "mse", **kwargs)
    return lambda: model.fit(X, Y, verbose=0)


def call_of_the_cell(layer):
    start = layer.cell.get_initial_state(2)
    return lambda: layer.cell(X[:, 0], start, training=True)


def stateless_call(layer):
    if not isinstance(layer, ENRNN):  # Has no idea of training but within a model.
        layer = keras.Sequential([keras.Input((3, 2)), layer])
    groups = layer.trainable_variables, layer.non_trainable_variables
    apply = traced(lambda *args: layer.stateless_call(*args, training=True)[1])

    def train():
        values = apply(*([v.value for v in group] for group in groups), X)
        for variable, value in zip(groups[1], values, strict=True):
            variable.assign(value)

    return train


WAYS = {
    "fit": fit,
    "call": lambda layer: lambda: layer(X, training=True),
    "call of the cell": call_of_the_cell,
    "stateless_call": stateless_call,
    "fit with XLA": lambda layer: fit(layer, jit_compile=True),
}
# Of Keras's layer around the cell, the one that differs most.
QUICK = [(False, way) for way in list(WAYS)[:2]] + [(True, "stateless_call")]


@pytest.mark.parametrize(
    ("stock", "way"),
    [
        pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow)
        for case in itertools.product([False, True], WAYS)
    ],
)
def test_normalizes_for_ever(stock, way):
    layer = built(ENRNN, 4, 3, features=2)
    if stock:
        layer = keras.layers.RNN(layer.cell)
    train = WAYS[way](layer)
    set_radius(layer, 0.5)
    train()
    assert not is_on(layer)
    np.testing.assert_array_equal(short_term(layer), layer.cell.short_term_matrix)
    for radius in (1.5, 0.5):
        set_radius(layer, radius)
        train()
        assert is_on(layer)
        assert is_divided(layer)
    # Set to the same matrix, it no longer has to divide.
    layer.cell.set_recurrent_matrix(layer.cell.recurrent_matrix())
    assert is_divided(layer)
    assert not is_on(layer)


@pytest.mark.slow_on_jax
def test_inference_divides_and_writes_nothing():
    layer = built(ENRNN, 4, 3, features=2)
    model = keras.Sequential([keras.Input((3, 2)), layer])
    set_radius(layer, 1.5)
    expected = layer(X)
    for outputs in (model.predict(X, verbose=0), model(X)):
        np.testing.assert_allclose(outputs, expected, atol=1000 * EPS32)
    assert is_divided(layer)
    assert not is_on(layer)


@pytest.mark.parametrize("stock", [False, True])
def test_the_switch_is_saved(stock, tmp_path):
    layer = keras.layers.RNN(ENRNNCell(4, 3)) if stock else ENRNN(4, 3)
    model = keras.Sequential([keras.Input((3, 2)), layer])
    set_radius(layer, 1.5)
    model(X, training=True)
    set_radius(layer, 0.5)
    loaded = reloaded(model, tmp_path).layers[0]
    assert is_on(loaded)
    np.testing.assert_array_equal(short_term(loaded), short_term(layer))


@pytest.mark.parametrize("n", [1, 7, 8])
def test_scaled_rotations(n):
    matrix = ops.convert_to_numpy(ScaledRotations(seed=1)((n, n), dtype="float64"))
    pairs = np.arange(n) // 2
    np.testing.assert_array_equal(matrix[pairs[:, None] != pairs], 0)
    squares = matrix.T @ matrix
    radii = np.sqrt(np.diag(squares))
    np.testing.assert_allclose(squares, np.diag(radii**2), atol=10 * EPS64)
    assert np.all((radii > 0) & (radii < 1))
    # Rotations by less than a right angle, or their negatives.
    first = np.arange(0, n - 1, 2)
    assert np.all(matrix[first, first] * matrix[first + 1, first] > 0)


def test_reports_a_gradient_that_is_missing():
    """Of an orthogonal `T` all eigenvalues tie, far more than can be parted."""
    tied = np.linalg.qr(np.random.default_rng(0).normal(size=(40, 40)))[0]
    for matrix, found in ((tied, False), (0.9 * np.eye(40), True)):
        layer = ENRNN(2, 40, short_term_initializer=matrix)
        layer.build((None, None, 1))
        assert layer.cell.eigenpair_report()["gradient_found"] is found
