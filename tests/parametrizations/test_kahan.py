"""The inverses of both Cayley transforms: every matrix, by an `A` of small entries."""

import itertools

import numpy as np
import pytest

from keras_ortho.parametrizations import (
    orthogonality_error,
    scaled_cayley_inverse,
    scaled_cayley_unitary_inverse,
)
from tests import reference
from tests.reference import random_orthogonal, random_unitary

EPS = np.finfo("float64").eps


def assert_round_trip(matrix):
    """By the complex transform, and by the real one if the matrix is real."""
    n = len(matrix)
    slack = 100 * n * EPS
    values = scaled_cayley_unitary_inverse(matrix)
    a = reference.skew_hermitian(*values[:2])
    assert np.abs(a).max() <= 1.25 + slack
    assert np.abs(a.diagonal()).max() <= 0.5 + slack
    found = [reference.unitary_cayley(*values)]
    if not np.iscomplexobj(matrix):
        entries, signs = scaled_cayley_inverse(matrix)
        assert entries.shape == (n * (n - 1) // 2,)
        np.testing.assert_array_equal(np.abs(signs), 1)
        assert np.abs(entries).max(initial=0) <= 1 + slack
        found.append(reference.scaled_cayley(entries, signs))
    for each in found:
        # So the condition number of I + A is at most of the order of n.
        np.testing.assert_allclose(each, matrix, atol=10 * n * n * EPS)


@pytest.mark.parametrize("draw", [random_orthogonal, random_unitary])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 50, 200])
@pytest.mark.parametrize("seed", range(3))
def test_random_matrices(draw, n, seed):
    assert_round_trip(draw(n, seed))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9, 65, 100])
def test_special_matrices(n):
    fourier = np.fft.fft(np.eye(n)) / np.sqrt(n)
    permuted = np.eye(n)[np.random.default_rng(n).permutation(n)]
    for matrix in (np.eye(n), 1j * np.eye(n), fourier, permuted):
        assert_round_trip(matrix)
        assert_round_trip(-matrix)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_every_permutation_of_four(order):
    assert_round_trip(np.eye(4)[list(order)])


@pytest.mark.parametrize("multiplicity", [1, 2, 5])
def test_eigenvalue_minus_one(multiplicity):
    basis = random_orthogonal(12, multiplicity)
    eigenvalues = np.ones(12)
    eigenvalues[:multiplicity] = -1
    assert_round_trip(basis * eigenvalues @ basis.T)


@pytest.mark.parametrize("symmetric", [0.0, 1e4 * np.arange(6.0)])
def test_entries_that_were_large(symmetric):
    # The matrix `A` that comes back is another one, with small entries.
    entries, phases = np.array([1e3, -2e2, 5e4]), np.zeros(3)
    made = reference.unitary_cayley(entries, symmetric + np.zeros(6), phases)
    left, _, right = np.linalg.svd(made if np.any(symmetric) else made.real)
    assert_round_trip(left @ right)


def test_takes_the_nearest_matrix():
    exact = random_orthogonal(30, 0)
    found = reference.scaled_cayley(*scaled_cayley_inverse(exact.astype("float32")))
    turned = scaled_cayley_unitary_inverse((1j * exact).astype("complex64"))
    for each, wanted in (found, exact), (reference.unitary_cayley(*turned), 1j * exact):
        assert orthogonality_error(each) <= 100 * 30 * EPS
        np.testing.assert_allclose(each, wanted, atol=30 * np.finfo("float32").eps)
