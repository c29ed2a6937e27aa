import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import ORNN, ORNNCell
from keras_ortho.activations import LeakyReLU
from keras_ortho.parametrizations import orthogonality_error
from tests import reference
from tests.cells.building import assert_gradients, builder, refused, weights_of
from tests.gradients import weight_gradients
from tests.reference import random_orthogonal

pytestmark = pytest.mark.backends

EPS32, EPS64 = np.finfo("float32").eps, np.finfo("float64").eps


built = builder(ORNN, 7)


def ornn(x, weights, slope=0.1):
    """The paper's step, in columns: the reflectors applied one by one."""
    n = len(weights["bias"])
    w = reference.householder(weights["reflectors"], n)
    h = np.tile(weights["initial_state"], (len(x), 1))
    states = []
    for t in range(x.shape[1]):
        z = (w @ h.T).T + x[:, t] @ weights["kernel"] + weights["bias"]
        h = np.where(z > 0, z, slope * z)
        states.append(h)
    return np.stack(states, axis=1)


@pytest.mark.parametrize(
    ("n", "reflections"), [(1, None), (2, 1), (7, 3), (7, None), (16, 16)]
)
def test_against_numpy(n, reflections):
    layer = built(
        units=n,
        reflections=reflections,
        return_sequences=True,
        dtype="float64",
        bias_initializer=keras.initializers.RandomNormal(stddev=0.3),
    )
    x = np.random.default_rng(0).normal(size=(4, 9, 3))
    expected = ornn(x, weights_of(layer))
    # Neither the matrix nor the activation lengthens an error of n eps a step.
    atol = 9 * 10 * n * EPS64 * np.abs(expected).max()
    np.testing.assert_allclose(layer(x), expected, atol=atol)


@pytest.mark.parametrize("reflections", [2, None])
def test_gradients(reflections):
    layer = built(units=4, reflections=reflections, dtype="float64")
    assert_gradients(layer, lambda x, weights: ornn(x, weights)[:, -1])


@pytest.mark.slow_on_jax
def test_starts_with_the_papers_settings():
    layer = built(units=128, features=2, reflections=16)
    weights = weights_of(layer)
    packed, n = weights["reflectors"], 128
    for k in range(n, n - 16, -1):
        u, packed = packed[:k], packed[k:]
        assert np.linalg.norm(u) == pytest.approx(1, abs=float(10 * EPS32))
        # Directions of every kind: no entry stands out.
        assert np.abs(u).max() < 6 / np.sqrt(k)
    limit = np.sqrt(6 / (2 + 128))
    assert 0.8 * limit < np.abs(weights["kernel"]).max() <= limit
    limit = np.sqrt(3 / (2 * 128))
    assert 0.8 * limit < np.abs(weights["initial_state"]).max() <= limit
    np.testing.assert_array_equal(weights["bias"], 0)
    assert layer.activation == LeakyReLU(0.1)


@pytest.mark.slow
def test_both_determinants_occur():
    determinants = {
        np.linalg.slogdet(built(ORNNCell, units=3).recurrent_matrix())[0]
        for _ in range(20)
    }
    assert determinants == {-1, 1}


@pytest.mark.parametrize("n", [1, 2, 5, 30])
@pytest.mark.parametrize("determinant", [-1, 1])
@pytest.mark.slow_on_jax
def test_set_recurrent_matrix(n, determinant):
    layer = built(units=n, dtype="float64")
    matrix = random_orthogonal(n, n)
    matrix[0] *= determinant * np.linalg.slogdet(matrix)[0]
    layer.set_recurrent_matrix(matrix)
    np.testing.assert_allclose(layer.recurrent_matrix(), matrix, atol=10 * n * EPS64)


@pytest.mark.parametrize(
    "initializer", ["identity", "orthogonal", random_orthogonal(5, 0)]
)
@pytest.mark.slow_on_jax
def test_recurrent_initializer_that_yields_a_matrix(initializer):
    cell = built(ORNNCell, units=5, recurrent_initializer=initializer)
    matrix = ops.convert_to_numpy(cell.recurrent_matrix())
    assert orthogonality_error(matrix) <= 5 * 5 * EPS32
    if not isinstance(initializer, str):
        np.testing.assert_allclose(matrix, initializer, atol=50 * EPS32)


def test_the_identity_can_be_trained():
    """Its reflectors are not zero, whose gradient would be."""
    layer = built(units=6, recurrent_initializer="identity", dtype="float64")
    x = np.random.default_rng(0).normal(size=(8, 10, 3))
    _, found = weight_gradients(layer, lambda h: ops.sum(h * h), x)
    packed = found["reflectors"]
    for k in range(6, 1, -1):
        u, packed = packed[:k], packed[k:]
        assert np.abs(u).max() > 0
    assert packed == 0


def test_fewer_reflectors_take_no_matrix():
    cell = built(ORNNCell, units=5, reflections=3)
    with pytest.raises(ValueError, match=r"must be 5 .*Received: reflections=\(3,\)"):
        cell.set_recurrent_matrix(np.eye(5))
    with pytest.raises(ValueError, match=r"must be 5 .*Received: reflections=\(3,\)"):
        built(ORNNCell, units=5, reflections=3, recurrent_initializer="identity")


@pytest.mark.slow_on_jax
def test_matrices_that_do_not_fit():
    cell = built(ORNNCell, units=3)
    with refused(cell, "`matrix` must .*Received: "):
        cell.set_recurrent_matrix(np.zeros((3, 3)))


@pytest.mark.parametrize("reflections", [0, 8, 2.0, "all", True])
def test_reflections_out_of_range(reflections):
    with pytest.raises(ValueError, match="Received: reflections="):
        ORNN(7, reflections=reflections)


def test_slope_survives_a_config():
    layer = ORNN(4)
    assert layer.get_config()["activation"]["config"] == {"negative_slope": 0.1}
    again = ORNN.from_config(layer.get_config())
    assert again.activation == LeakyReLU(0.1)
    other = ORNN.from_config(ORNN(4, activation=LeakyReLU(0.3)).get_config())
    assert other.activation == LeakyReLU(0.3)
