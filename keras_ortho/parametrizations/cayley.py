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
from collections.abc import Callable
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

# Bound on the diagonal entries of `A`, which are zero if it is real.
DIAGONAL_BOUND = 0.5


def polished(
    inverse: Tensor,
    adjoint: Callable[[Tensor], Tensor] = ops.transpose,
    product: Callable[[Tensor, Tensor], Tensor] = ops.matmul,
) -> Tensor:
    """Takes two Newton-Schulz steps that bring `X = (I + A)^-1` nearer to its form.

    `X + X* = 2 X* X` holds up to rounding. If `A` is large, the defect is most of the
    error of the inverse, at most a few percent with `limited`. A step towards
    `W W* = I`, `W (3 I - W* W) / 2`, squares it; it is written in terms of
    `X = (I + W) / 2` so that small terms stay small.
    """
    for _ in range(2):
        transpose = adjoint(inverse)
        defect = inverse + transpose - 2.0 * product(transpose, inverse)
        inverse = inverse + (product(inverse, defect) - 0.5 * defect)
    return inverse


def _forward(entries: Tensor) -> tuple[Tensor, Tensor]:
    skew = skew_matrix(entries)
    identity = ops.eye(skew.shape[0], dtype=skew.dtype)
    inverse = polished(factorized(ops.inv, identity + skew))
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
    skew, signs = small_transform(nearest_orthogonal(matrix), bound=1.0)
    return skew[np.triu_indices(len(skew), 1)], signs


def small_transform(matrix: np.ndarray, bound: float) -> tuple[np.ndarray, np.ndarray]:
    """Finds an `A` whose entries do not exceed a bound, and `D`, for a given matrix."""
    diagonal = _pivoting_phases(matrix)
    while True:
        # (I + W D*)^-1 = (I + A) / 2
        inverse = np.linalg.inv(np.eye(len(matrix)) + matrix * diagonal.conj())
        turned = _turn_to_small_entries(inverse, diagonal, bound)
        if turned is diagonal:
            skew = 2.0 * inverse - np.eye(len(matrix))
            return (skew - skew.conj().T) / 2, diagonal
        # Steps update the inverse without a new solve, so rounding errors accumulate.
        # Solve again, and repeat the check.
        diagonal = turned


def _pivoting_phases(matrix: np.ndarray) -> np.ndarray:
    """Chooses phases or signs such that `I + W D*` needs no pivoting in elimination.

    Column j of `I` is zero except in row j, so the row operations for the previous
    columns do not change its entry there. The pivot of `I + W D*` is therefore 1 plus
    `conj(d_j)` times the entry of `W` after the same operations. If `d_j` has the phase
    of that entry, the pivot is at least 1.
    """
    reduced = matrix.copy()
    diagonal = np.ones(len(matrix), matrix.dtype)
    for j in range(len(matrix)):
        modulus = abs(reduced[j, j])
        if modulus > 0:
            diagonal[j] = reduced[j, j] / modulus
        factors = diagonal[j].conj() * reduced[j + 1 :, j] / (1.0 + modulus)
        reduced[j + 1 :] -= np.outer(factors, reduced[j])
    return diagonal


def _turn_to_small_entries(
    inverse: np.ndarray, diagonal: np.ndarray, bound: float
) -> np.ndarray:
    """Rotates phases until no entry of `A` exceeds its bound.

    Rotating one phase such that `a_jj = iy` becomes zero multiplies `|det(I + W D*)|`
    by `sqrt(1 + y^2)`. Rotating two phases by pi multiplies it by
    `||a_ij|^2 - y_i y_j|`. The determinant is bounded, so the loop ends.
    """
    size = len(inverse)
    # An entry may exceed its bound by rounding alone. No step improves that.
    slack = 100 * size * np.finfo("float64").eps
    while True:
        skew = 2.0 * inverse - np.eye(size)
        heights = skew.diagonal().imag  # Zero, if the matrix is real.
        sizes = np.abs(skew)
        np.fill_diagonal(sizes, 0)
        i, j = np.unravel_index(sizes.argmax(), sizes.shape)
        if np.abs(heights).max() > DIAGONAL_BOUND + slack:
            chosen = [int(np.abs(heights).argmax())]
            y = heights[chosen]
            turns = (1 + 1j * y) / (1 - 1j * y)
        elif sizes[i, j] > bound + slack:
            chosen, turns = [int(i), int(j)], np.array([-1.0, -1.0])
        else:
            return diagonal
        diagonal = diagonal.copy()
        diagonal[chosen] *= turns.conj()
        # Sherman-Morrison-Woodbury formula, with (I + Z)^-1 Z = I - (I + Z)^-1.
        columns = np.eye(size)[:, chosen] - inverse[:, chosen]
        small = np.diag(1 / (turns - 1)) + columns[chosen]
        inverse = inverse - columns @ np.linalg.solve(small, inverse[chosen])


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
