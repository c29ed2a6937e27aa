import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import SVDRNN, SVDRNNCell
from keras_ortho.activations import LeakyReLU
from keras_ortho.initializers import UniformReflectors
from keras_ortho.parametrizations import spectral_deviation
from tests import reference
from tests.cells.building import assert_gradients, builder, refused, weights_of
from tests.reference import random_orthogonal

pytestmark = pytest.mark.backends

EPS32, EPS64 = np.finfo("float32").eps, np.finfo("float64").eps


built = builder(SVDRNN, 7)


def svdrnn(x, weights, margin, center=1.0):
    """Equations 4, 7 and 8 of the paper, whose `U` is the right factor here."""
    n = len(weights["bias"])
    u = reference.householder(weights["right_reflectors"], n)
    v = reference.householder(weights["left_reflectors"], n)
    sigmoid = 1 / (1 + np.exp(-weights["singular_logits"]))
    w = u @ np.diag(2 * margin * (sigmoid - 0.5) + center) @ v.T
    h = np.zeros((len(x), n))
    states = []
    for t in range(x.shape[1]):
        z = (w @ h.T).T + x[:, t] @ weights["kernel"] + weights["bias"]
        h = np.where(z > 0, z, 0.1 * z)
        states.append(h)
    return np.stack(states, axis=1)


def lively(layer):
    random = np.random.default_rng(2)
    for weight in layer.trainable_variables:
        if weight.name in ("bias", "singular_logits"):
            weight.assign(random.normal(size=weight.shape))
    return layer


@pytest.mark.parametrize(
    ("n", "reflections", "margin"),
    [(1, None, 0.1), (2, 1, 0.3), (7, (3, 2), 0.5), (7, None, 0.01), (16, 16, 0.0)],
)
def test_against_numpy(n, reflections, margin):
    layer = lively(
        built(
            units=n,
            reflections=reflections,
            spectral_margin=margin,
            return_sequences=True,
            dtype="float64",
        )
    )
    x = np.random.default_rng(0).normal(size=(4, 9, 3))
    expected = svdrnn(x, weights_of(layer), margin)
    # An error of n eps grows by at most 1 + margin a step.
    atol = 9 * 10 * n * EPS64 * np.abs(expected).max() * (1 + margin) ** 9
    np.testing.assert_allclose(layer(x), expected, atol=atol)


@pytest.mark.parametrize("reflections", [(2, 3), None])
def test_gradients(reflections):
    layer = lively(
        built(units=4, reflections=reflections, spectral_margin=0.3, dtype="float64")
    )
    assert_gradients(layer, lambda x, weights: svdrnn(x, weights, 0.3)[:, -1])


@pytest.mark.slow_on_jax
def test_starts_with_the_papers_settings():
    layer = built(units=128, features=2, reflections=16)
    weights = weights_of(layer)
    np.testing.assert_array_equal(weights["singular_logits"], 0)
    np.testing.assert_array_equal(weights["bias"], 0)
    assert spectral_deviation(layer.recurrent_matrix()) <= 128 * EPS32
    assert layer.activation == LeakyReLU(0.1)
    assert layer.cell.spectral_margin == 0.01
    assert "initial_state" not in weights


@pytest.mark.parametrize("seed", [None, 1])
def test_the_factors_start_differently(seed):
    """Or their product would be the identity."""
    layer = built(units=6, recurrent_initializer=UniformReflectors(seed))
    weights = weights_of(layer)
    difference = weights["left_reflectors"] - weights["right_reflectors"]
    assert np.abs(difference[:6]).max() > 0.01


@pytest.mark.parametrize("n", [1, 2, 5, 30])
@pytest.mark.slow_on_jax
def test_set_recurrent_matrix(n):
    layer = built(units=n, spectral_margin=0.5, spectral_center=0.75, dtype="float64")
    random = np.random.default_rng(n)
    values = random.uniform(0.3, 1.2, size=n)
    matrix = random_orthogonal(n, 1) * values @ random_orthogonal(n, 2)
    layer.set_recurrent_matrix(matrix)
    np.testing.assert_allclose(layer.recurrent_matrix(), matrix, atol=20 * n * EPS64)


def test_reads_back_what_it_made():
    """Also in float32, with singular values at the ends of their interval."""
    layer = built(units=9, spectral_margin=0.01)
    layer.cell.singular_logits.assign(np.array([-90, -9, -1, 0, 0, 1, 9, 30, 90]))
    matrix = ops.convert_to_numpy(layer.recurrent_matrix())
    twin = built(units=9, spectral_margin=0.01, recurrent_initializer=matrix)
    np.testing.assert_allclose(twin.recurrent_matrix(), matrix, atol=20 * 9 * EPS32)


@pytest.mark.parametrize("initializer", ["identity", "orthogonal"])
@pytest.mark.slow_on_jax
def test_recurrent_initializer_that_yields_a_matrix(initializer):
    cell = built(SVDRNNCell, units=5, recurrent_initializer=initializer)
    assert spectral_deviation(cell.recurrent_matrix()) <= 20 * 5 * EPS32


@pytest.mark.slow_on_jax
def test_matrices_that_do_not_fit():
    cell = built(SVDRNNCell, units=3)
    with refused(cell, "lie between 0.99 and 1.01. Received: b"):
        cell.set_recurrent_matrix(np.diag([1.0, 1.0, 1.02]))
    fewer = built(SVDRNNCell, units=3, reflections=(3, 2))
    with pytest.raises(ValueError, match=r"must be 3 .*Received: reflections=\(3, 2\)"):
        fewer.set_recurrent_matrix(np.eye(3))
    with pytest.raises(ValueError, match="must lie between"):
        built(SVDRNNCell, units=3, recurrent_initializer="glorot_uniform")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("reflections", 8),
        ("reflections", (1, 0)),
        ("reflections", (1, 2, 3)),
        ("spectral_margin", -0.1),
        ("spectral_margin", float("inf")),
        ("spectral_margin", None),
        ("spectral_center", 0),
        ("spectral_center", float("nan")),
    ],
)
def test_arguments_out_of_range(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must .*Received: {name}="):
        SVDRNN(7, **{name: value})


def test_reflections_survive_a_config():
    for reflections in (None, 3, [3, 2]):
        again = SVDRNN.from_config(SVDRNN(4, reflections).get_config())
        assert again.cell.reflections == reflections


@pytest.mark.slow
def test_training_keeps_the_margin():
    """However large the steps."""
    model = keras.Sequential([keras.Input((5, 3)), SVDRNN(6, spectral_margin=0.1)])
    model.compile(keras.optimizers.SGD(10.0), "mse")
    x = np.random.default_rng(0).normal(size=(8, 5, 3))
    start = ops.convert_to_numpy(model.layers[0].recurrent_matrix())
    model.fit(x, np.ones((8, 6)), epochs=5, verbose=0)
    matrix = ops.convert_to_numpy(model.layers[0].recurrent_matrix())
    assert np.abs(matrix - start).max() > 0.1
    assert 0.01 < spectral_deviation(matrix) <= 0.1 + 20 * 6 * EPS32
