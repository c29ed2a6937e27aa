"""The scaled Cayley transform: free entries to an orthogonal matrix.

    W = (I + A)^-1 (I - A) D

with `A` skew-symmetric, given by the `n (n - 1) / 2` entries of its strict upper
triangle in row order, and `D` a diagonal of signs. Helfrich, Willmott and Ye,
"Orthogonal recurrent neural networks with scaled Cayley transform", ICML 2018.
"""

import math

import numpy as np
from keras import ops

from keras_ortho.backend import with_gradient
from keras_ortho.backend.types import Tensor


def num_entries(size: int) -> int:
    """The number of free entries of a skew-symmetric matrix.

    Args:
        size: Order `n` of the matrix.

    Returns:
        `n (n - 1) / 2`.

    Example:
    >>> num_entries(170)
    14365
    """
    return size * (size - 1) // 2


def matrix_size(entries: int) -> int:
    """The order of the skew-symmetric matrix that has so many free entries.

    Args:
        entries: Number of free entries, `n (n - 1) / 2`.

    Returns:
        The order `n`; the larger one, 1, where there are no entries.

    Raises:
        ValueError: If no matrix has that many.

    Example:
    >>> matrix_size(14365)
    170
    """
    size = (1 + math.isqrt(1 + 8 * max(entries, 0))) // 2
    if num_entries(size) != entries:
        raise ValueError(
            "`entries` must be n (n - 1) / 2 for some order n. "
            f"Received: entries={entries}"
        )
    return size


def skew_matrix(entries: Tensor) -> Tensor:
    """Builds a skew-symmetric matrix from its strict upper triangle.

    Args:
        entries: Tensor of shape `(n (n - 1) / 2,)`, in row order.

    Returns:
        Tensor of shape `(n, n)` and the same dtype.

    Example:
    >>> skew_matrix(np.array([1.0, 2.0, 3.0]))
    [[0, 1, 2], [-1, 0, 3], [-2, -3, 0]]
    """
    size = matrix_size(entries.shape[0])
    rows, columns = np.triu_indices(size, 1)
    # Where each element lies in [0, entries, -entries].
    position = np.zeros((size, size), "int32")
    position[rows, columns] = np.arange(1, len(rows) + 1)
    position[columns, rows] = position[rows, columns] + len(rows)
    zero = ops.zeros((1,), dtype=entries.dtype)
    return ops.take(ops.concatenate([zero, entries, -entries]), position)


def upper_entries(matrix: Tensor) -> Tensor:
    """Reads the strict upper triangle of a matrix, in row order.

    Args:
        matrix: Tensor of shape `(n, n)`.

    Returns:
        Tensor of shape `(n (n - 1) / 2,)` and the same dtype.
    """
    size = matrix.shape[0]
    rows, columns = np.triu_indices(size, 1)
    position = (rows * size + columns).astype("int32")
    return ops.take(ops.reshape(matrix, (-1,)), position)


def _forward(entries: Tensor) -> tuple[Tensor, Tensor]:
    skew = skew_matrix(entries)
    inverse = ops.inv(ops.eye(skew.shape[0], dtype=skew.dtype) + skew)
    # X + X^T = 2 X^T X. What rounding adds to the difference is most of the error of
    # the inverse where A is large, and is taken away by one step of Newton and Schulz,
    # W (3 I - W^T W) / 2, written for X = (I + W) / 2 so that small parts stay small.
    transpose = ops.transpose(inverse)
    defect = inverse + transpose - 2.0 * ops.matmul(transpose, inverse)
    inverse = inverse + (ops.matmul(inverse, defect) - 0.5 * defect)
    return inverse, inverse


def _backward(inverse: Tensor, upstream: Tensor) -> tuple[Tensor]:
    # dX = -X dA X: nothing needs to be factorized again (theorem 3.2 of the paper).
    transpose = ops.transpose(inverse)
    product = ops.matmul(ops.matmul(transpose, upstream), transpose)
    return (upper_entries(ops.transpose(product) - product),)


# X = (I + A)^-1
_shifted_inverse = with_gradient(_forward, _backward)


def scaled_cayley(entries: Tensor, signs: Tensor) -> Tensor:
    """The scaled Cayley transform `W = (I + A)^-1 (I - A) D`.

    One inverse serves the value and the gradient (Theorem 3.2); a step of Newton and
    Schulz takes away what rounding adds to it. The signs are taken as constants. For
    how far rounding takes `W` from the orthogonal matrices see `orthogonality_error`.

    Args:
        entries: Tensor of shape `(n (n - 1) / 2,)`: the strict upper triangle of
            `A` in row order, float32 or float64.
        signs: Tensor of shape `(n,)`: the diagonal of `D`, entries 1 and -1.

    Returns:
        The orthogonal matrix, of shape `(n, n)` and the dtype of `entries`.

    Raises:
        ValueError: If the shapes do not agree.

    Example:
    >>> scaled_cayley(np.array([1.0]), np.array([1.0, 1.0]))
    [[0, -1], [1, 0]]

    Reference:

    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html)
    """
    size = signs.shape[0]
    if tuple(entries.shape) != (num_entries(size),):
        raise ValueError(
            "`entries` must hold the n (n - 1) / 2 free entries for the n signs. "
            f"Received: entries.shape={tuple(entries.shape)}, "
            f"signs.shape={tuple(signs.shape)}"
        )
    inverse = _shifted_inverse(entries)
    # (I + A)^-1 (I - A) = 2 (I + A)^-1 - I, and rounding harms the right side
    # less: by a factor of ten where A is large.
    identity = ops.eye(size, dtype=inverse.dtype)
    return (2.0 * inverse - identity) * ops.stop_gradient(signs)


def diagonal_signs(size: int, negative_ones: int | float) -> np.ndarray:
    """The diagonal of `D`: ones, then the negative ones.

    Args:
        size: Order `n` of the matrix.
        negative_ones: How many entries are -1. An int is a count in `0 .. n`, a
            float in `[0, 1]` a fraction of the entries, rounded half up. So `1`
            is one entry and `1.0` all of them.

    Returns:
        Array of shape `(n,)`, float64, the -1s last.

    Raises:
        ValueError: If `negative_ones` is neither.

    Example:
    >>> diagonal_signs(4, 0.5)
    array([ 1.,  1., -1., -1.])
    """
    count = negative_ones
    if isinstance(negative_ones, float | np.floating) and 0 <= negative_ones <= 1:
        # The fraction that was meant is the decimal one: 0.7 of 45 is 31.5 and
        # rounds to 32, while the binary neighbor of 0.7 gives a little less.
        count = int(np.floor(round(float(negative_ones) * size, 9) + 0.5))
    is_count = isinstance(count, int | np.integer) and not isinstance(count, bool)
    if not is_count or not 0 <= count <= size:
        raise ValueError(
            "`negative_ones` must be a count, an int between 0 and the number of "
            f"units, {size}, or a fraction of them, a float between 0 and 1. "
            f"Received: negative_ones={negative_ones!r}"
        )
    return np.concatenate([np.ones(size - int(count)), -np.ones(int(count))])
