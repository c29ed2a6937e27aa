import numpy as np
import pytest
from keras import ops

from keras_ortho import parametrizations as sets
from keras_ortho.parametrizations import skew

pytestmark = pytest.mark.backends

SIZES = [1, 2, 3, 4, 5, 8, 17, 33, 64]


def test_skew_matrix_in_row_order():
    matrix = ops.convert_to_numpy(skew.skew_matrix(np.array([1.0, 2.0, 3.0])))
    np.testing.assert_array_equal(matrix, [[0, 1, 2], [-1, 0, 3], [-2, -3, 0]])


@pytest.mark.parametrize("n", SIZES)
def test_upper_entries_undo_skew_matrix(n):
    entries = np.random.default_rng(n).normal(size=skew.num_entries(n))
    np.testing.assert_array_equal(
        skew.upper_entries(skew.skew_matrix(entries)), entries
    )


@pytest.mark.parametrize("n", SIZES)
def test_matrix_size_undoes_num_entries(n):
    assert skew.matrix_size(skew.num_entries(n)) == n


@pytest.mark.parametrize("entries", [2, 4, -1, 7])
def test_no_matrix_has_so_many_entries(entries):
    with pytest.raises(ValueError, match=rf"Received: entries={entries}"):
        skew.matrix_size(entries)


@pytest.mark.parametrize("shape", [(), (1, 2), (3, 3)])
def test_entries_of_another_shape(shape):
    for make in (skew.skew_matrix, sets.skew_exponential, sets.antisymmetric):
        with pytest.raises(ValueError, match="`entries` must have .* Received: "):
            make(np.ones(shape))
