import numpy as np
import pytest
from keras import ops

from keras_ortho.parametrizations import (
    antisymmetric,
    antisymmetric_inverse,
    antisymmetry_error,
)
from keras_ortho.parametrizations.skew import num_entries
from tests import reference

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps
SIZES = [1, 2, 3, 8, 17]


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


def test_antisymmetry_error():
    matrix = np.array([[1.0, 2.0], [-2.0, 0.0]])
    assert antisymmetry_error(matrix) == 2.0
    assert antisymmetry_error(matrix, diffusion=-0.5) == pytest.approx(np.sqrt(2))
