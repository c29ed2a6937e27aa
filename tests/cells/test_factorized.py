import numpy as np
import pytest

from keras_ortho import AntisymmetricRNN, FactorizedRNN, FactorizedRNNCell
from keras_ortho.activations import LeakyReLU
from keras_ortho.parametrizations import spectral_deviation
from tests import reference
from tests.cells.building import assert_gradients, builder, refused, weights_of
from tests.reference import random_orthogonal

pytestmark = pytest.mark.backends

EPS32, EPS64 = np.finfo("float32").eps, np.finfo("float64").eps


built = builder(FactorizedRNN, 7)


def matrix_of(weights, margin, center):
    left = reference.scaled_cayley(weights["left_skew"], weights["left_signs"])
    right = reference.scaled_cayley(weights["right_skew"], weights["right_signs"])
    sigmoid = 1 / (1 + np.exp(-weights["singular_logits"]))
    return left @ np.diag(center + 2 * margin * (sigmoid - 0.5)) @ right.T


def factorized(x, weights, margin, center):
    w = matrix_of(weights, margin, center)
    h = np.zeros((len(x), len(w)))
    for t in range(x.shape[1]):
        z = x[:, t] @ weights["kernel"] + h @ w + weights["bias"]
        h = np.where(z > 0, z, 0.1 * z)
    return h


def lively(layer):
    random = np.random.default_rng(2)
    for weight in layer.trainable_variables:
        if weight.name != "kernel":
            weight.assign(random.normal(size=weight.shape))
    for signs in (layer.cell.left_signs, layer.cell.right_signs):
        signs.assign(random.choice([-1, 1], size=signs.shape))
    return layer


@pytest.mark.parametrize("n", [1, 2, 7, 16])
@pytest.mark.parametrize(("margin", "center"), [(0.0, 1.0), (0.5, 0.75)])
def test_against_numpy(n, margin, center):
    layer = lively(
        built(units=n, spectral_margin=margin, spectral_center=center, dtype="float64")
    )
    x = np.random.default_rng(0).normal(size=(4, 9, 3))
    expected = factorized(x, weights_of(layer), margin, center)
    # Solving with I + A, of normal entries, magnifies rounding by about n.
    atol = 9 * 10 * n * n * EPS64 * np.abs(expected).max() * (center + margin) ** 9
    np.testing.assert_allclose(layer(x), expected, atol=max(atol, 100 * EPS64))


def test_gradients():
    layer = lively(built(units=4, spectral_margin=0.3, dtype="float64"))
    assert_gradients(layer, lambda x, weights: factorized(x, weights, 0.3, 1.0))


def test_starts_as_a_rotation():
    layer = built(units=8)
    eigenvalues = np.linalg.eigvals(layer.recurrent_matrix())
    np.testing.assert_allclose(np.abs(eigenvalues), 1, atol=80 * EPS32)
    angles = np.abs(np.angle(eigenvalues))
    assert np.all((angles > 0) & (angles < np.pi / 2))
    assert layer.activation == LeakyReLU(0.1)


@pytest.mark.parametrize("n", [1, 2, 5, 30])
@pytest.mark.slow_on_jax
def test_set_recurrent_matrix(n):
    """Of either determinant, with any singular values in the interval."""
    layer = built(units=n, spectral_margin=0.5, spectral_center=0.75, dtype="float64")
    random = np.random.default_rng(n)
    for sign in (-1, 1):
        values = random.uniform(0.3, 1.2, size=n)
        matrix = random_orthogonal(n, 1) * values @ random_orthogonal(n, 2)
        matrix[0] *= sign
        layer.set_recurrent_matrix(matrix)
        # The entries of A are at most 1, the condition of I + A at most n.
        atol = 10 * n * n * EPS64 + 100 * EPS64
        np.testing.assert_allclose(layer.recurrent_matrix(), matrix, atol=atol)


@pytest.mark.parametrize("initializer", ["identity", "orthogonal", -np.eye(5)])
@pytest.mark.slow_on_jax
def test_recurrent_initializer_that_yields_a_matrix(initializer):
    cell = built(FactorizedRNNCell, units=5, recurrent_initializer=initializer)
    assert spectral_deviation(cell.recurrent_matrix()) <= 20 * 5 * EPS32
    if not isinstance(initializer, str):
        np.testing.assert_allclose(
            cell.recurrent_matrix(), initializer, atol=100 * EPS32
        )


@pytest.mark.slow_on_jax
def test_matrices_that_do_not_fit():
    cell = built(FactorizedRNNCell, units=3)
    with refused(cell, "lie between 0.9 and 1.1. Received: between"):
        cell.set_recurrent_matrix(np.diag([1.0, 1.0, 1.2]))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spectral_margin", -0.1),
        ("spectral_margin", "wide"),
        ("spectral_center", 0.0),
        ("spectral_center", -1),
    ],
)
def test_arguments_out_of_range(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must .*Received: {name}="):
        FactorizedRNN(7, **{name: value})


@pytest.mark.parametrize(
    ("matrix", "message"),
    [(np.eye(2) + 0.5j, "contain real numbers"), (np.nan * np.eye(2), "be finite")],
)
@pytest.mark.slow_on_jax
def test_matrices_that_are_not_real_and_finite(matrix, message):
    for layer in (FactorizedRNN(2), AntisymmetricRNN(2, antisymmetric=False)):
        layer.build((None, 3, 1))
        with pytest.raises(ValueError, match=f"`matrix` must {message}"):
            layer.set_recurrent_matrix(matrix)
