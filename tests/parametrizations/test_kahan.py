import itertools

import numpy as np
import pytest

from keras_ortho.parametrizations import orthogonality_error, scaled_cayley_inverse
from tests import reference

EPS = np.finfo("float64").eps


def random_orthogonal(n, seed, dtype="float64"):
    gaussian = np.random.default_rng(seed).normal(size=(n, n))
    q, r = np.linalg.qr(gaussian)
    return (q * np.sign(np.diag(r))).astype(dtype)


def assert_round_trip(matrix):
    n = len(matrix)
    entries, signs = scaled_cayley_inverse(matrix)
    assert entries.shape == (n * (n - 1) // 2,)
    np.testing.assert_array_equal(np.abs(signs), 1)
    # With |a_ij| <= 1 the condition number of I + A is at most n.
    assert np.abs(entries).max(initial=0) <= 1 + 100 * n * EPS
    np.testing.assert_allclose(
        reference.scaled_cayley(entries, signs), matrix, atol=10 * n * n * EPS
    )


@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 50, 200])
@pytest.mark.parametrize("seed", range(3))
def test_random_orthogonal_matrices(n, seed):
    assert_round_trip(random_orthogonal(n, seed))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 65])
def test_minus_identity(n):
    assert_round_trip(-np.eye(n))


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_every_permutation_of_four(order):
    assert_round_trip(np.eye(4)[list(order)])


@pytest.mark.parametrize("n", [9, 100])
def test_permutations(n):
    order = np.random.default_rng(n).permutation(n)
    assert_round_trip(np.eye(n)[order])
    assert_round_trip(-np.eye(n)[order])


@pytest.mark.parametrize("multiplicity", [1, 2, 5])
def test_eigenvalue_minus_one(multiplicity):
    basis = random_orthogonal(12, multiplicity)
    eigenvalues = np.ones(12)
    eigenvalues[:multiplicity] = -1
    assert_round_trip(basis * eigenvalues @ basis.T)


def test_entries_that_were_large():
    # The skew matrix that comes back is another one, with small entries.
    left, _, right = np.linalg.svd(
        reference.scaled_cayley(np.array([1e3, -2e2, 5e4]), np.ones(3))
    )
    assert_round_trip(left @ right)


def test_takes_the_nearest_orthogonal_matrix():
    exact = random_orthogonal(30, 0)
    entries, signs = scaled_cayley_inverse(exact.astype("float32"))
    found = reference.scaled_cayley(entries, signs)
    assert orthogonality_error(found) <= 100 * 30 * EPS
    np.testing.assert_allclose(found, exact, atol=30 * np.finfo("float32").eps)


@pytest.mark.parametrize(
    ("matrix", "received"),
    [
        (np.ones((2, 3)), r"matrix.shape=\(2, 3\)"),
        (np.ones(4), r"matrix.shape=\(4,\)"),
        (np.zeros((0, 0)), r"matrix.shape=\(0, 0\)"),
        (np.zeros((3, 3)), "a distance of 1.7e"),
        (1.001 * np.eye(3), "a distance of"),
        (np.full((2, 2), np.nan), "NaN or infinite"),
        (1j * np.eye(2), "matrix.dtype=complex128"),
        (np.array([["1"]]), "matrix.dtype=<U1"),
    ],
)
def test_not_orthogonal(matrix, received):
    with pytest.raises(ValueError, match=rf"`matrix` must .*Received: .*{received}"):
        scaled_cayley_inverse(matrix)
