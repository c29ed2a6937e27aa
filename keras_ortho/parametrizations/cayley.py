"""The scaled Cayley transform: free entries to an orthogonal matrix.

    W = (I + A)^-1 (I - A) D

with `A` skew-symmetric, given by the `n (n - 1) / 2` entries of its strict upper
triangle in row order, and `D` a diagonal of signs. Helfrich, Willmott and Ye,
"Orthogonal recurrent neural networks with scaled Cayley transform", ICML 2018.

The inverse follows Kahan's theorem: every orthogonal matrix has this form, for some `D`
and an `A` whose entries are at most 1 in absolute value. W. Kahan, "Is there a small
skew Cayley transform with zero diagonal?", Linear Algebra and its Applications 417,
2006; E. O'Dorney, "Minimizing the Cayley transform of an orthogonal matrix by
multiplying by signature matrices", ibid. 448, 2014.
"""

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend import with_gradient
from keras_ortho.backend.precision import wide_tensor
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import is_integer
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.orthogonality import (
    nearest_orthogonal,
    random_orthogonal,
)
from keras_ortho.parametrizations.skew import (
    HenaffSkew,
    num_entries,
    skew_matrix,
    upper_entries,
)


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
        ValueError: If the shapes do not agree, or the entries are of another dtype.

    Example:
    >>> scaled_cayley(np.array([1.0]), np.array([1.0, 1.0]))
    [[0, -1], [1, 0]]

    Reference:

    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html)
    """
    entries = wide_tensor("entries", entries)
    signs = ops.cast(signs, entries.dtype)
    size = math.prod(signs.shape)
    if (entries.shape, signs.shape) != ((num_entries(size),), (size,)):
        raise ValueError(
            "`entries` must hold the n (n - 1) / 2 free entries for the n `signs`. "
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
    if not is_integer(count) or not 0 <= count <= size:
        raise ValueError(
            "`negative_ones` must be a count, an int between 0 and the number of "
            f"units, {size}, or a fraction of them, a float between 0 and 1. "
            f"Received: negative_ones={negative_ones!r}"
        )
    return np.concatenate([np.ones(size - int(count)), -np.ones(int(count))])


def scaled_cayley_inverse(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Finds `A` and `D` with `(I + A)^-1 (I - A) D` equal to a given matrix.

    Works for every orthogonal matrix, also for one with the eigenvalue -1, of
    which the plain Cayley transform has no inverse. The pair is not unique.

    Args:
        matrix: Real array of shape `(n, n)`, orthogonal up to `100 n` times the
            rounding unit of its dtype; the nearest orthogonal matrix is used.

    Returns:
        A pair `(entries, signs)` in float64: the strict upper triangle of `A` in
        row order, of shape `(n (n - 1) / 2,)`, none larger than 1 in absolute
        value beyond rounding; and the diagonal of `D`, of shape `(n,)`.

    Raises:
        ValueError: If the matrix is not square, not of float16, float32, float64
            or integers, not finite, or not orthogonal.

    Example:
    >>> scaled_cayley_inverse(-np.eye(2))
    (array([0.]), array([-1., -1.]))
    """
    orthogonal = nearest_orthogonal(matrix)
    signs = _pivoting_signs(orthogonal)
    skew = _inverse_cayley(orthogonal * signs)
    # Exchanging changes `skew` in place of solving anew, and rounding adds up;
    # so solve again at the end, and look again.
    while (flips := _flips_to_small_entries(skew)).any():
        signs = np.where(flips, -signs, signs)
        skew = _inverse_cayley(orthogonal * signs)
    return skew[np.triu_indices(len(skew), 1)], signs


def _pivoting_signs(orthogonal: np.ndarray) -> np.ndarray:
    """Chooses the signs so that `I + W D` can be eliminated without pivoting.

    Column j of `I` has a 1 in row j and zeros above and below it, so the row
    operations of the earlier columns leave it alone. The pivot of `I + W D` is
    therefore 1 plus `d_j` times a number that `W` under the same operations
    holds: with the sign of that number it is at least 1.
    """
    reduced = orthogonal.copy()
    signs = np.ones(len(orthogonal))
    for j in range(len(orthogonal)):
        signs[j] = -1.0 if reduced[j, j] < 0 else 1.0
        factors = signs[j] * reduced[j + 1 :, j] / (1.0 + abs(reduced[j, j]))
        reduced[j + 1 :] -= np.outer(factors, reduced[j])
    return signs


def _inverse_cayley(rotation: np.ndarray) -> np.ndarray:
    """The skew-symmetric `A = (I - Z) (I + Z)^-1 = 2 (I + Z)^-1 - I`."""
    identity = np.eye(len(rotation))
    skew = 2.0 * np.linalg.inv(identity + rotation) - identity
    return (skew - skew.T) / 2


def _flips_to_small_entries(skew: np.ndarray) -> np.ndarray:
    """The signs to flip until no entry of `A` exceeds 1 in absolute value.

    Flipping the signs i and j multiplies `|det(I + W D)|`, which is bounded, by
    `a_ij^2`: while some entry exceeds 1 there is a flip that helps, and there is
    an end to them. It changes `A` by an exchange of the rows and columns i and j
    (a principal pivot), which costs a rank-two update rather than a new solve.
    """
    size = len(skew)
    skew = skew.copy()
    flips = np.zeros(size, bool)
    # An entry may exceed 1 by rounding alone, which no flip improves.
    limit = 1.0 + 100 * size * np.finfo("float64").eps
    while True:
        i, j = np.unravel_index(np.abs(skew).argmax(), skew.shape)
        if abs(skew[i, j]) <= limit:
            return flips
        pair = [i, j]
        flips[pair] = ~flips[pair]
        pivot = np.linalg.inv(skew[np.ix_(pair, pair)])
        rows = pivot @ skew[pair]
        skew += skew[pair].T @ rows
        skew[pair] = rows
        skew[:, pair] = -rows.T
        skew[np.ix_(pair, pair)] = pivot


@keras.saving.register_keras_serializable(package="keras_ortho")
class ScaledCayley(Parametrization):
    """All orthogonal matrices, by the scaled Cayley transform: scoRNN's.

    Args:
        negative_ones: How many entries of `D` are -1, the last ones: an int is a
            count, a float in `[0, 1]` a fraction. A matrix that is given brings its
            own signs along. Default: 0.5.

    Example:
    >>> ScaledCayley().distance(np.eye(3))
    0.0
    """

    takes = "skew entries"
    full_at_zero = True

    def __init__(self, negative_ones: int | float = 0.5) -> None:
        self.negative_ones = negative_ones

    def check(self, size: int) -> None:
        """Checks the number of negative ones."""
        diagonal_signs(size, self.negative_ones)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the free entries of `A` and the signs `D`."""
        signs = keras.initializers.Constant(diagonal_signs(size, self.negative_ones))
        return [
            FreeVariable(
                "recurrent_skew", (num_entries(size),), initializer or HenaffSkew()
            ),
            FreeVariable("recurrent_signs", (size,), signs, trainable=False),
        ]

    def matrix(self, *values: Tensor) -> Tensor:
        """Makes `W = (I + A)^-1 (I - A) D`."""
        return scaled_cayley(*values)

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds `A` and `D`, of any orthogonal matrix."""
        return scaled_cayley_inverse(matrix)

    def sample(self, size: int, seed: int | None = None) -> np.ndarray:
        """Draws an orthogonal matrix uniformly (Haar measure)."""
        return random_orthogonal(size, seed)
