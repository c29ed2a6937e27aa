"""Products with blocks against those in NumPy with the matrix, with its zeros."""

import numpy as np
import pytest
import scipy.linalg
from keras import ops

from keras_ortho.recurrence.blocks import outer_sum, times, transposed

pytestmark = pytest.mark.backends

STEPS, ROWS = 4, 5


def as_matrix(kernel):
    """The matrix of blocks `(heads, [parts,] j, [parts,] k)`: of a part all heads."""
    if kernel.ndim == 3:
        kernel = kernel[:, None, :, None]
    _, rows, _, columns, _ = kernel.shape
    return np.block(
        [
            [scipy.linalg.block_diag(*kernel[:, i, :, j]) for j in range(columns)]
            for i in range(rows)
        ]
    )


@pytest.mark.parametrize(
    "shape", [(2, 3, 3), (2, 3, 2), (2, 1, 3, 2, 2), (2, 2, 3, 2, 3)], ids=str
)
def test_products(shape):
    random = np.random.default_rng(0)
    kernel, other = random.normal(size=(2, *shape))
    matrix = as_matrix(kernel)
    x, upstream = (random.normal(size=(STEPS, ROWS, size)) for size in matrix.shape)
    # Sums of some hundred products of numbers of size 1.
    close = {"atol": 1e-12}
    for of in (np.s_[:], np.s_[0]):  # Of all steps, and of one.
        np.testing.assert_allclose(times(x[of], kernel), x[of] @ matrix, **close)
        back = times(upstream[of], transposed(kernel))
        np.testing.assert_allclose(back, upstream[of] @ matrix.T, **close)
        # Times any other kernel, it is the derivative in the direction of that.
        found = ops.convert_to_numpy(outer_sum(x[of], upstream[of], kernel))
        wanted = np.sum(upstream[of] * (x[of] @ as_matrix(other)))
        np.testing.assert_allclose(np.sum(found * other), wanted, **close)
