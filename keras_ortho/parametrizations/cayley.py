"""The scaled Cayley transform: from free entries to an orthogonal matrix.

    W = (I + A)^-1 (I - A) D

where `A` is skew-symmetric, given by the `n (n - 1) / 2` entries of its strict upper
triangle in row order, and `D` is a diagonal matrix of signs. Helfrich, Willmott and Ye,
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
from keras_ortho.parametrizations.arithmetic import factorized, limited
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
    inverse = factorized(ops.inv, ops.eye(skew.shape[0], dtype=skew.dtype) + skew)
    # X + X^T = 2 X^T X holds up to rounding. If A is large, the defect is most of the
    # error of the inverse, at most a few percent with `limited`. A Newton-Schulz step,
    # W (3 I - W^T W) / 2, squares it; it is written in terms of X = (I + W) / 2 so that
    # small terms stay small.
    for _ in range(2):
        transpose = ops.transpose(inverse)
        defect = inverse + transpose - 2.0 * ops.matmul(transpose, inverse)
        inverse = inverse + (ops.matmul(inverse, defect) - 0.5 * defect)
    return inverse, inverse


def _backward(inverse: Tensor, upstream: Tensor) -> tuple[Tensor]:
    # dX = -X dA X: no new factorization is needed (theorem 3.2 of the paper).
    transpose = ops.transpose(inverse)
    product = ops.matmul(ops.matmul(transpose, upstream), transpose)
    return (upper_entries(ops.transpose(product) - product),)


# X = (I + A)^-1
_shifted_inverse = with_gradient(_forward, _backward)


def scaled_cayley(entries: Tensor, signs: Tensor) -> Tensor:
    """Computes the scaled Cayley transform `W = (I + A)^-1 (I - A) D`.

    A single matrix inverse serves both the value and the gradient (theorem 3.2). Two
    Newton-Schulz steps remove most of its rounding error: for finite entries of any
    size, `||W^T W - I||_F` is at most about `n eps`. Rounding hides `I` beside a larger
    `A`, so an `A` with `||A||_F > 1 / (8 eps)`, 1e6 in float32, is scaled to that norm.
    Entries that are not finite give NaN. The signs are treated as constants.
    `orthogonality_error` measures how far `W` is from orthogonal.

    Args:
        entries: Tensor of shape `(n (n - 1) / 2,)`, float32 or float64: the strict
            upper triangle of `A` in row order.
        signs: Tensor of shape `(n,)`: the diagonal of `D`, entries 1 and -1.

    Returns:
        The orthogonal matrix, of shape `(n, n)` and the dtype of `entries`.

    Raises:
        ValueError: If the shapes do not match, or the dtype of `entries` is neither
            float32 nor float64.

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
            "`entries` must have n (n - 1) / 2 entries for n `signs`. Received: "
            f"entries.shape={tuple(entries.shape)}, signs.shape={tuple(signs.shape)}"
        )
    inverse = _shifted_inverse(*limited(entries))
    # (I + A)^-1 (I - A) = 2 (I + A)^-1 - I. The rounding error of the right side is
    # smaller: by a factor of ten if A is large.
    identity = ops.eye(size, dtype=inverse.dtype)
    return (2.0 * inverse - identity) * ops.stop_gradient(signs)


def diagonal_signs(size: int, negative_ones: int | float) -> np.ndarray:
    """Returns the diagonal of `D`: ones, followed by negative ones."""
    count = negative_ones
    if isinstance(negative_ones, float | np.floating) and 0 <= negative_ones <= 1:
        # The decimal fraction is meant: 0.7 of 45 is 31.5, which rounds to 32, but
        # the nearest binary number to 0.7 gives slightly less.
        count = int(np.floor(round(float(negative_ones) * size, 9) + 0.5))
    if not is_integer(count) or not 0 <= count <= size:
        raise ValueError(
            "`negative_ones` must be a count, an int between 0 and the number of "
            f"units, {size}, or a fraction of them, a float between 0 and 1. "
            f"Received: negative_ones={negative_ones!r}"
        )
    return np.concatenate([np.ones(size - int(count)), -np.ones(int(count))])


def scaled_cayley_inverse(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Finds `A` and `D` such that `(I + A)^-1 (I - A) D` is a given matrix.

    Works for every orthogonal matrix, including those with the eigenvalue -1, for which
    the plain Cayley transform has no inverse. The pair is not unique.

    Args:
        matrix: Real array of shape `(n, n)`, orthogonal up to `100 n` times the
            machine epsilon of its dtype. The nearest orthogonal matrix is used.

    Returns:
        A pair `(entries, signs)` of float64 arrays. `entries`, of shape
        `(n (n - 1) / 2,)`, is the strict upper triangle of `A` in row order, at most 1
        in absolute value up to rounding. `signs`, of shape `(n,)`, is the diagonal of
        `D`.

    Raises:
        ValueError: If the matrix is not square, not finite or not orthogonal, or its
            dtype is not float16, float32, float64 or an integer dtype.

    Example:
    >>> scaled_cayley_inverse(-np.eye(2))
    (array([0.]), array([-1., -1.]))
    """
    orthogonal = nearest_orthogonal(matrix)
    signs = _pivoting_signs(orthogonal)
    skew = _inverse_cayley(orthogonal * signs)
    # Exchanges update `skew` without a new solve, so rounding errors accumulate. Solve
    # again at the end, and repeat the check.
    while (flips := _flips_to_small_entries(skew)).any():
        signs = np.where(flips, -signs, signs)
        skew = _inverse_cayley(orthogonal * signs)
    return skew[np.triu_indices(len(skew), 1)], signs


def _pivoting_signs(orthogonal: np.ndarray) -> np.ndarray:
    """Chooses signs such that `I + W D` needs no pivoting in Gaussian elimination.

    Column j of `I` is zero except in row j, so the row operations for the previous
    columns do not change its entry there. The pivot of `I + W D` is therefore 1 plus
    `d_j` times the entry of `W` after the same operations. If `d_j` has the sign of
    that entry, the pivot is at least 1.
    """
    reduced = orthogonal.copy()
    signs = np.ones(len(orthogonal))
    for j in range(len(orthogonal)):
        signs[j] = -1.0 if reduced[j, j] < 0 else 1.0
        factors = signs[j] * reduced[j + 1 :, j] / (1.0 + abs(reduced[j, j]))
        reduced[j + 1 :] -= np.outer(factors, reduced[j])
    return signs


def _inverse_cayley(rotation: np.ndarray) -> np.ndarray:
    """Computes the skew-symmetric `A = (I - Z) (I + Z)^-1 = 2 (I + Z)^-1 - I`."""
    identity = np.eye(len(rotation))
    skew = 2.0 * np.linalg.inv(identity + rotation) - identity
    return (skew - skew.T) / 2


def _flips_to_small_entries(skew: np.ndarray) -> np.ndarray:
    """Finds signs to flip such that no entry of `A` exceeds 1 in absolute value.

    Flipping the signs i and j multiplies `|det(I + W D)|` by `a_ij^2`. While an entry
    exceeds 1, flipping its signs increases the determinant, which is bounded, so the
    loop ends. A flip changes `A` by a principal pivot on the rows and columns i and j:
    a rank-two update instead of a new solve.
    """
    size = len(skew)
    skew = skew.copy()
    flips = np.zeros(size, bool)
    # An entry may exceed 1 by rounding alone. No flip improves that.
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
    """All orthogonal matrices, by the scaled Cayley transform, as in scoRNN.

    Args:
        negative_ones: How many entries of `D`, the last ones, are -1: an int is a
            count, a float in `[0, 1]` a fraction. Not used if the initializer returns a
            matrix, which determines the signs. Default: 0.5.

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
        """Returns the variables: the free entries of `A` and the signs `D`."""
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
        """Finds `A` and `D` for any orthogonal matrix, see `scaled_cayley_inverse`."""
        return scaled_cayley_inverse(matrix)

    def sample(self, size: int, seed: int | None = None) -> np.ndarray:
        """Draws an orthogonal matrix uniformly (Haar measure)."""
        return random_orthogonal(size, seed)
