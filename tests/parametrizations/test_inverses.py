"""Every inverse, of matrices where it is hard, against the definition in NumPy."""

import numpy as np
import pytest
from scipy.linalg import block_diag

from keras_ortho import parametrizations as sets
from tests import reference
from tests.parametrizations.definitions import TABLE
from tests.reference import random_orthogonal, random_unitary

pytestmark = pytest.mark.backends

EPS, EPS32 = np.finfo("float64").eps, np.finfo("float32").eps


def orthogonal(n):
    random = np.random.default_rng(n)
    drawn, other = random_orthogonal(n, 0), random_orthogonal(n, 1)
    skew = reference.skew(random.normal(size=n * (n - 1) // 2), n)
    flips = np.where(np.arange(n) % 3, 1, -1)
    near = [np.linalg.solve(np.eye(n) + s * skew, np.eye(n) - s * skew) for s in SMALL]
    low = drawn.astype("float32")
    mixed = block_diag(random_orthogonal(max(n // 2, 1), 2), np.eye(n - max(n // 2, 1)))
    matrices = [drawn, drawn[::-1], low, other * flips @ other.T, np.diag(flips), mixed]
    matrices += [np.eye(n), -np.eye(n), np.eye(n)[::-1], *near, *(-w for w in near)]
    return [*matrices, np.eye(n)[random.permutation(n)]]


SMALL = (1e-4, 1e-9, 1e-17, 1e-160, 1e-300)


def rotations(n):
    return [w for w in orthogonal(n) if np.linalg.det(w) > 0]


def unitary(n):
    drawn, fourier = random_unitary(n), np.fft.fft(np.eye(n)) / np.sqrt(n)
    special = [drawn, drawn.astype("complex64"), fourier]
    return [*special, *orthogonal(n), *(1j * w for w in orthogonal(n))]


def real(n):
    """Defective ones, and nearly so, among them."""
    random = np.random.default_rng(n)
    general = random.normal(size=(n, n))
    basis = np.linalg.qr(general)[0]
    jordan = np.eye(n) + np.eye(n, k=1)
    pairs = np.triu(random.normal(size=(n, n)))
    for row in range(1, n - 1, 2):  # Complex pairs in odd rows, their diagonals equal.
        pairs[row + 1, row] = -abs(random.normal()) - 0.1
        pairs[row, row + 1] = 1.0
        pairs[row + 1, row + 1] = pairs[row, row]
    symmetric, skew = general + general.T, general - general.T
    special = [general, symmetric, skew, np.triu(general), pairs, np.zeros((n, n))]
    defective = [basis @ jordan @ basis.T, jordan + 1e-8 * basis, np.eye(n, k=1)]
    return [*special, *defective, *orthogonal(n)]


REACHED = {
    "cayley": orthogonal,
    "unitary-cayley": unitary,
    "householder": orthogonal,
    "rotations": orthogonal,
    "unitary-rotations": unitary,
    "exponential": rotations,
    "schur": real,
    "schur-exponential": real,
}


@pytest.mark.parametrize("name", REACHED)
def test_every_matrix_is_reached(name):
    kind, definition, sizes = TABLE[name]
    for n in sizes:
        for matrix in REACHED[name](n):
            values = kind.inverse(matrix)
            shapes = [variable.shape for variable in kind.variables(n)]
            assert [value.shape for value in values] == shapes
            atol = 10 * n * EPS * max(1, np.linalg.norm(matrix, 2))
            if "cayley" in name:  # The condition number of I + A is of the order of n.
                atol = n * atol
            low = matrix.dtype in ("float32", "complex64")
            np.testing.assert_allclose(
                definition(*values), matrix, rtol=0, atol=atol + n * EPS32 * low
            )


@pytest.mark.parametrize("n", [1, 2, 7, 65])
def test_the_entries_of_a_cayley_transform_are_small(n):
    slack = 100 * n * EPS
    for matrix in unitary(n):
        a = reference.skew_hermitian(*sets.ScaledCayleyUnitary.inverse(matrix)[:2])
        assert np.abs(a).max() <= 1.25 + slack
        if not np.iscomplexobj(matrix):
            entries, signs = sets.ScaledCayley.inverse(matrix)
            np.testing.assert_array_equal(np.abs(signs), 1)
            assert np.abs(entries).max(initial=0) <= 1 + slack


def test_reflectors_have_unit_length():
    """Also where a column needs none there is one, that can be trained."""
    for matrix in orthogonal(6):
        rows = np.zeros((6, 6))
        (rows[np.triu_indices(6)],) = sets.Householder().inverse(matrix)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=10 * EPS)
