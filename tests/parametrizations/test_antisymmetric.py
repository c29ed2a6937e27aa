import numpy as np
import pytest
from keras import ops

from keras_ortho.parametrizations import (
    antisymmetric,
    antisymmetric_inverse,
    antisymmetry_error,
)
from keras_ortho.parametrizations.antisymmetric import diffused
from keras_ortho.parametrizations.skew import num_entries
from tests import reference
from tests.gradients import gradients

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps
SIZES = [1, 2, 3, 8, 17]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("diffusion", [0.0, 0.1, 1.0])
def test_is_its_definition(n, diffusion):
    entries = np.random.default_rng(n).normal(size=num_entries(n))
    matrix = ops.convert_to_numpy(antisymmetric(entries, diffusion))
    upper = np.zeros((n, n))
    upper[np.triu_indices(n, 1)] = entries
    expected = upper - upper.T - diffusion * np.eye(n)
    assert matrix.dtype == "float64"
    np.testing.assert_array_equal(matrix, expected)
    eigenvalues = np.linalg.eigvals(matrix)
    norm = np.linalg.norm(matrix, 2)
    np.testing.assert_allclose(eigenvalues.real, -diffusion, atol=10 * n * EPS * norm)


@pytest.mark.parametrize("n", SIZES)
def test_gradient(n):
    random = np.random.default_rng(n)
    entries, upstream = random.normal(size=num_entries(n)), random.normal(size=(n, n))
    (found,) = gradients(lambda a: ops.sum(antisymmetric(a, 0.1) * upstream), entries)
    expected = reference.central_differences(
        lambda a: np.sum((reference.skew(a, n) - 0.1 * np.eye(n)) * upstream),
        entries,
        EPS ** (1 / 3),
    )
    assert found.shape == entries.shape
    # A linear function: rounding of a sum of n^2 terms, divided by the step.
    np.testing.assert_allclose(found, expected, atol=n * n * EPS ** (2 / 3))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", SIZES)
def test_inverse(n, dtype):
    entries = np.random.default_rng(n).normal(size=num_entries(n)).astype(dtype)
    matrix = ops.convert_to_numpy(antisymmetric(entries, 0.1))
    assert matrix.dtype == dtype
    # Only the diagonal is rounded.
    assert antisymmetry_error(matrix, 0.1) <= n * np.finfo(dtype).eps
    np.testing.assert_array_equal(antisymmetric_inverse(matrix, 0.1), entries)


def test_inverse_of_a_rounded_matrix():
    n = 9
    entries = np.random.default_rng(0).normal(size=num_entries(n))
    exact = reference.skew(entries, n)
    noise = np.random.default_rng(1).uniform(-1, 1, size=(n, n))
    found = antisymmetric_inverse(exact + EPS * noise)
    np.testing.assert_allclose(found, entries, atol=2 * EPS)


def test_integers():
    np.testing.assert_array_equal(
        antisymmetric_inverse(np.array([[-1, 3], [-3, -1]]), 1), [3.0]
    )


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(2), "Received: a matrix with a distance of 2.8e"),
        (np.array([[0.0, 1.0], [1.0, 0.0]]), "Received: a matrix with a distance"),
        (np.full((2, 2), np.nan), "must be finite. Received"),
        (np.zeros((2, 3)), r"Received: matrix.shape=\(2, 3\)"),
        (np.zeros(4), r"Received: matrix.shape=\(4,\)"),
    ],
)
def test_matrices_of_another_form(matrix, message):
    with pytest.raises(ValueError, match=message):
        antisymmetric_inverse(matrix)


def test_the_diffusion_belongs_to_the_form():
    with pytest.raises(ValueError, match="-diffusion = -0.1"):
        antisymmetric_inverse(np.zeros((3, 3)), 0.1)


def test_antisymmetry_error():
    matrix = np.array([[1.0, 2.0], [-2.0, 0.0]])
    assert antisymmetry_error(matrix) == 2.0
    assert antisymmetry_error(matrix, diffusion=-0.5) == pytest.approx(np.sqrt(2))


def test_diffused():
    found = diffused(ops.convert_to_tensor(np.ones((2, 2))), 0.25)
    np.testing.assert_array_equal(found, [[0.75, 1], [1, 0.75]])
