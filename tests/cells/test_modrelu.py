"""modReLU by its names, exact and smoothed, in the cells of complex units."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import (
    EURNN,
    EURNNCell,
    FullURNN,
    FullURNNCell,
    RestrictedURNN,
    RestrictedURNNCell,
    ScoRNNCell,
    ScuRNN,
    ScuRNNCell,
)
from keras_ortho.activations import complex_modrelu, modrelu, smoothed_modrelu
from keras_ortho.backend import in_graph
from tests.gradients import weight_gradients

pytestmark = pytest.mark.backends

LAYERS_OF_COMPLEX_UNITS = [ScuRNN, RestrictedURNN, FullURNN, EURNN]
CELLS = [ScuRNNCell, RestrictedURNNCell, FullURNNCell, EURNNCell]
EPS = np.finfo("float64").eps


@pytest.mark.parametrize("cls", LAYERS_OF_COMPLEX_UNITS)
def test_the_norm_is_kept(cls):
    """Over 2 000 steps without input and bias; the smoothed form loses some of it."""
    n, steps = 64, 2000
    arguments = {"bias_initializer": "zeros", "dtype": "float64"}
    layer = cls(n, **arguments)
    start = np.random.default_rng(0).normal(size=(1, 2 * n))
    start /= np.linalg.norm(start)
    x = np.zeros((1, steps, 1))

    def norm_after(layer, x):
        end = in_graph(lambda x, h: layer(x, initial_state=[h]))(x, start)
        return float(np.linalg.norm(end))

    layer.build(x.shape)
    # A step is a product with a matrix that is unitary to some n eps; a sum of 2n
    # products is exact to 2n eps of the sum of their moduli, at most sqrt(2n) times
    # the norm of the state: 7e-10 in all.
    matrix = np.asarray(layer.recurrent_matrix())
    off = np.linalg.norm(matrix.T @ matrix - np.eye(2 * n), 2)
    bound = steps * (off + 2 * n * np.sqrt(2 * n) * EPS)
    assert bound < 1e-8
    assert abs(norm_after(layer, x) - 1) <= bound

    smoothed = cls(n, activation="smoothed_modrelu", **arguments)
    smoothed.build(x.shape)
    smoothed.set_weights(layer.get_weights())
    # About 1e-5 / |z| a step, with |z| about 1 / sqrt(n) of a unit state.
    assert 0.01 < 1 - norm_after(smoothed, x[:, :500]) < 0.1


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("stock", [False, True])
def test_a_state_of_zero_has_a_gradient(dtype, stock):
    """Blank inputs, no initial state, and biases of either sign."""
    layer = ScuRNN(3, trainable_initial_state=False, dtype=dtype)
    x = np.zeros((2, 4, 2), "float32")
    x[:, 3] = 1e-3
    x = x.astype(dtype)
    layer.build(x.shape)
    layer.cell.bias.assign([0.5, 0.0, -0.5])
    layer = keras.layers.RNN(layer.cell, dtype=dtype) if stock else layer
    layer.build(x.shape)
    _, found = weight_gradients(layer, lambda h: ops.sum(ops.cast(h, "float32")), x)
    for name, gradient in found.items():
        assert np.isfinite(gradient).all(), name


def test_names():
    for given, known in {
        "modrelu": "modrelu",
        "exact_modrelu": "modrelu",
        "smoothed_modrelu": "smoothed_modrelu",
        complex_modrelu: "modrelu",
        modrelu: "modrelu",
        smoothed_modrelu: "smoothed_modrelu",
    }.items():
        assert ScuRNNCell(2, activation=given).activation == known
        if known == "modrelu":
            cell = ScoRNNCell(2, activation=given)
            assert cell.get_config()["activation"] == cell.activation == known


@pytest.mark.parametrize("cls", [*CELLS, *LAYERS_OF_COMPLEX_UNITS])
def test_configs(cls):
    for name in ("modrelu", "smoothed_modrelu"):
        config = cls(4, activation=name).get_config()
        assert cls.from_config(config).activation == name
    # As it was saved when there was one form, the smoothed one.
    config["activation"] = "modrelu"
    assert cls.from_config(config).activation == "smoothed_modrelu"
