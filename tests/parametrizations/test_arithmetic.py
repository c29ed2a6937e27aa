import numpy as np
import pytest

from keras_ortho.parametrizations import arithmetic
from tests import reference

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps


def random_matrix(*shape, seed=0):
    random = np.random.default_rng(seed)
    return random.normal(size=shape) + 1j * random.normal(size=shape)


def rows_of(matrix):
    return np.concatenate([matrix.real, matrix.imag], axis=1)


def test_a_block_multiplies_row_vectors():
    matrix, vectors = random_matrix(3, 4), random_matrix(5, 3, seed=1)
    block = np.asarray(arithmetic.block(rows_of(matrix)))
    np.testing.assert_allclose(
        rows_of(vectors) @ block, rows_of(vectors @ matrix), atol=100 * EPS
    )
    np.testing.assert_array_equal(block, reference.complex_block(matrix))


def test_products():
    left, right = random_matrix(3, 4), random_matrix(4, 2, seed=1)
    found = arithmetic.product(rows_of(left), rows_of(right))
    np.testing.assert_allclose(found, rows_of(left @ right), atol=100 * EPS)
    square = random_matrix(4, 4)
    found = arithmetic.adjoint(rows_of(square))
    np.testing.assert_array_equal(found, rows_of(square.conj().T))


def test_phases_from_either_side():
    matrix, phases = random_matrix(3, 3), np.array([0.5, -2.0, 3.0])
    cosine, sine = np.cos(phases), np.sin(phases)
    diagonal = np.diag(np.exp(1j * phases))
    right = arithmetic.turn(rows_of(matrix), cosine, sine)
    np.testing.assert_allclose(right, rows_of(matrix @ diagonal), atol=100 * EPS)
    left = arithmetic.turn(rows_of(matrix), cosine[:, None], sine[:, None])
    np.testing.assert_allclose(left, rows_of(diagonal @ matrix), atol=100 * EPS)


def test_forms_of_a_matrix():
    matrix = random_matrix(3, 3)
    matrix[1, 2] = np.nan
    for form in (matrix, reference.complex_block(matrix)):
        found = arithmetic.complex_matrix("matrix", form, 3)
        np.testing.assert_array_equal(found, matrix)
