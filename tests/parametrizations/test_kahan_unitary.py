import itertools

import numpy as np
import pytest

from keras_ortho.parametrizations import scaled_cayley_unitary_inverse, unitarity_error
from tests import reference
from tests.parametrizations.test_cayley_unitary import by_definition, skew_hermitian

EPS = np.finfo("float64").eps


def random_unitary(n, seed=0):
    random = np.random.default_rng(seed)
    q, r = np.linalg.qr(random.normal(size=(n, n)) + 1j * random.normal(size=(n, n)))
    return q * (np.diag(r) / np.abs(np.diag(r)))


def assert_round_trip(matrix):
    n = len(matrix)
    values = scaled_cayley_unitary_inverse(matrix)
    a = skew_hermitian(*values[:2], n)
    slack = 100 * n * EPS
    assert np.abs(a).max() <= 1.25 + slack
    assert np.abs(a.diagonal()).max() <= 0.5 + slack
    # So the condition number of I + A is at most of the order of n.
    np.testing.assert_allclose(by_definition(*values), matrix, atol=10 * n * n * EPS)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 50, 150])
@pytest.mark.parametrize("seed", range(3))
def test_random_unitary_matrices(n, seed):
    assert_round_trip(random_unitary(n, seed))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 65])
def test_special_matrices(n):
    fourier = np.fft.fft(np.eye(n)) / np.sqrt(n)
    order = np.random.default_rng(n).permutation(n)
    for matrix in (np.eye(n), -np.eye(n), 1j * np.eye(n), fourier, np.eye(n)[order]):
        assert_round_trip(matrix)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_every_permutation_of_four(order):
    assert_round_trip(np.eye(4)[list(order)])


def test_orthogonal_matrices_of_either_determinant():
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(9, 9)))[0]
    assert_round_trip(rotation)
    assert_round_trip(rotation * np.array([-1.0] + [1.0] * 8))


def test_entries_that_were_large():
    n = 3
    a = skew_hermitian(np.array([1e3, -2e2, 5e4]), 1e4 * np.arange(6.0), n)
    left, _, right = np.linalg.svd(np.linalg.solve(np.eye(n) + a, np.eye(n) - a))
    assert_round_trip(left @ right)


def test_takes_the_nearest_unitary_matrix():
    exact = random_unitary(30)
    values = scaled_cayley_unitary_inverse(exact.astype("complex64"))
    found = by_definition(*values)
    assert unitarity_error(reference.complex_block(found)) <= 100 * 30 * EPS
    np.testing.assert_allclose(found, exact, atol=30 * np.finfo("float32").eps)


@pytest.mark.parametrize(
    ("matrix", "received"),
    [
        (np.ones((2, 3)), r"matrix.shape=\(2, 3\)"),
        (np.zeros((0, 0)), r"matrix.shape=\(0, 0\)"),
        (1.001j * np.eye(3), "a distance of"),
        (np.full((2, 2), 1j * np.nan), "NaN or infinite"),
        (np.array([["1"]]), "matrix.dtype=<U1"),
    ],
)
def test_not_unitary(matrix, received):
    with pytest.raises(ValueError, match=rf"`matrix` must .*Received: .*{received}"):
        scaled_cayley_unitary_inverse(matrix)
