"""The complex scaled Cayley transform: from real variables to a unitary matrix.

    W = (I + A)^-1 (I - A) D

where `A = S + i Y` is skew-Hermitian, with a real skew-symmetric `S` and a real
symmetric `Y`, and `D` is a diagonal matrix of trained phases. Maduranga, Helfrich and
Ye, "Complex unitary recurrent neural networks using scaled Cayley transform", AAAI
2019.

The inverse follows Kahan: every unitary matrix has this form, for some `D` and an `A`
with zero diagonal whose entries are at most 1 in modulus. Such a `D` maximizes
`|det(I + W D*)|`. W. Kahan, "Is there a small skew Cayley transform with zero
diagonal?", Linear Algebra and its Applications 417, 2006. The maximum would be reached
only in the limit, so the inverse stops at slightly larger bounds on the entries, which
it satisfies after a bounded number of steps.
"""

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend import with_gradient
from keras_ortho.backend.elementary import cos, sin
from keras_ortho.backend.precision import wide_tensor
from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.arithmetic import (
    adjoint,
    block,
    factorized,
    limited,
    of_left_half,
    product,
    turn,
)
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.cayley import polished, small_transform
from keras_ortho.parametrizations.free_initializers import next_seed
from keras_ortho.parametrizations.orthogonality import nearest_unitary, random_unitary
from keras_ortho.parametrizations.skew import (
    HenaffSkew,
    matrix_size,
    num_entries,
    skew_matrix,
    upper_entries,
)

# Bound on the entries of `A` off the diagonal. While an entry exceeds its bound, a step
# multiplies the determinant by at least sqrt(1 + 1/4) (on the diagonal) or 25/16 - 1/4
# (off the diagonal). The determinant is at least 1 at the start and never more than
# 2^n, so there are at most 6.3 n steps.
BOUND = 1.25


def symmetric_matrix(entries: Tensor) -> Tensor:
    """Builds a symmetric matrix from its upper triangle."""
    size = matrix_size(entries.shape[0]) - 1
    rows, columns = np.triu_indices(size)
    position = np.zeros((size, size), "int32")
    position[rows, columns] = np.arange(len(rows))
    position[columns, rows] = position[rows, columns]
    return ops.take(entries, position)


def _forward(skew: Tensor, symmetric: Tensor) -> tuple[Tensor, Tensor]:
    # [Re A | Im A], the rows of `A`. The block of `A` is real and skew-symmetric.
    rows = ops.concatenate([skew_matrix(skew), symmetric_matrix(symmetric)], axis=1)
    size = rows.shape[0]
    identity = ops.eye(2 * size, dtype=rows.dtype)
    half = factorized(ops.solve, identity + block(rows), identity[:, :size])
    inverse = polished(of_left_half(half), adjoint, product)
    return inverse, inverse


def _backward(inverse: Tensor, upstream: Tensor) -> tuple[Tensor, Tensor]:
    # dX = -X dA X. With G = dL/dRe X + i dL/dIm X, a change of A changes L by
    # Re tr(Q dA), Q = -X G* X: no new factorization is needed.
    q = -product(product(inverse, adjoint(upstream)), inverse)
    real, imaginary = ops.split(q, 2, axis=1)
    skew = upper_entries(ops.transpose(real) - real)
    # An off-diagonal entry appears twice in the matrix.
    places = 1.0 - 0.5 * ops.eye(inverse.shape[0], dtype=inverse.dtype)
    symmetric = -places * (imaginary + ops.transpose(imaginary))
    return skew, upper_entries(symmetric, diagonal=True)


# The rows of X = (I + A)^-1
_shifted_inverse = with_gradient(_forward, _backward)


def scaled_cayley_unitary(skew: Tensor, symmetric: Tensor, phases: Tensor) -> Tensor:
    """Computes the unitary scaled Cayley transform `W = (I + A)^-1 (I - A) D`.

    A single factorization of a real matrix of order `2n` serves both the value and the
    gradient. Two Newton-Schulz steps remove most of its rounding error, and a very
    large `A` is scaled down, as in `scaled_cayley`: for finite arguments of any size,
    the result is unitary up to rounding.

    Args:
        skew: Tensor of shape `(n (n - 1) / 2,)`, float32 or float64: the strict upper
            triangle of `Re A` in row order.
        symmetric: Tensor of shape `(n (n + 1) / 2,)`: the upper triangle of `Im A` with
            the diagonal, in row order.
        phases: Tensor of shape `(n,)`: the angles of the diagonal of `D`, in
            radians.

    Returns:
        The unitary matrix in its real form `[[Re W, Im W], [-Im W, Re W]]`, of shape
        `(2n, 2n)` and the dtype of the arguments.

    Raises:
        ValueError: If the shapes do not match, or a dtype is neither float32 nor
            float64.

    Example:
    >>> scaled_cayley_unitary(np.zeros(0), np.array([1.0]), np.array([0.0]))  # -i
    [[0, -1], [1, 0]]

    Reference:

    - [Maduranga et al., 2019](https://arxiv.org/abs/1811.04142), theorem 1
    """
    skew = wide_tensor("skew", skew)
    symmetric = wide_tensor("symmetric", symmetric)
    phases = wide_tensor("phases", phases)
    size = phases.shape[0]
    found = (tuple(skew.shape), tuple(symmetric.shape))
    if found != ((num_entries(size),), (num_entries(size + 1),)):
        raise ValueError(
            "`skew` must have n (n - 1) / 2 and `symmetric` n (n + 1) / 2 entries for "
            f"n `phases`. Received: skew.shape={found[0]}, symmetric.shape={found[1]}, "
            f"phases.shape={tuple(phases.shape)}"
        )
    inverse = _shifted_inverse(*limited(skew, symmetric))
    # (I + A)^-1 (I - A) = 2 (I + A)^-1 - I, whose rounding error is smaller.
    identity = ops.eye(size, 2 * size, dtype=inverse.dtype)
    return block(turn(2.0 * inverse - identity, cos(phases), sin(phases)))


def scaled_cayley_unitary_inverse(
    matrix: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Finds `A` and `D` such that `(I + A)^-1 (I - A) D` is a given matrix.

    Works for every unitary matrix, including those with the eigenvalue -1, for which
    the plain Cayley transform has no inverse. The pair is not unique.

    Args:
        matrix: Real or complex array of shape `(n, n)`, unitary up to `100 n` times
            the machine epsilon of its dtype. The nearest unitary matrix is used.

    Returns:
        A tuple `(skew, symmetric, phases)` of float64 arrays, the arguments of
        `scaled_cayley_unitary`, of shapes `(n (n - 1) / 2,)`, `(n (n + 1) / 2,)` and
        `(n,)`. Up to rounding, the entries of `A` are at most 1.25 in modulus, those on
        the diagonal at most 0.5. The phases are in `(-pi, pi]`.

    Raises:
        ValueError: If the matrix is not square, not finite, or not unitary.

    Example:
    >>> scaled_cayley_unitary_inverse(-np.eye(1))
    (array([], dtype=float64), array([0.]), array([3.14159265]))
    """
    skew, diagonal = small_transform(nearest_unitary(matrix), bound=BOUND)
    size = len(skew)
    return (
        skew.real[np.triu_indices(size, 1)],
        skew.imag[np.triu_indices(size)],
        np.angle(diagonal),
    )


@keras.saving.register_keras_serializable(package="keras_ortho")
class ScaledCayleyUnitary(Parametrization):
    """All unitary matrices, by the scaled Cayley transform, as in scuRNN.

    Example:
    >>> ScaledCayleyUnitary().distance(1j * np.eye(3))
    0.0
    """

    is_complex = True
    takes = "skew entries"
    full_at_zero = True

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Returns the variables: the free entries of `A` and the phases of `D`."""
        skew, symmetric = num_entries(size), num_entries(size + 1)
        initializer = initializer or HenaffSkew()
        phases = keras.initializers.RandomUniform(
            0.0, 2 * math.pi, seed=next_seed(initializer)
        )
        return [
            FreeVariable("recurrent_skew_real", (skew,), initializer),
            FreeVariable(
                "recurrent_skew_imag", (symmetric,), keras.initializers.Zeros()
            ),
            FreeVariable("recurrent_phases", (size,), phases),
        ]

    def matrix(self, *values: Tensor) -> Tensor:
        """Makes `W = (I + A)^-1 (I - A) D` in its real form."""
        return scaled_cayley_unitary(*values)

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds the variables for any unitary matrix."""
        return scaled_cayley_unitary_inverse(matrix)

    def sample(self, size: int, seed: int | None = None) -> np.ndarray:
        """Draws a unitary matrix uniformly (Haar measure)."""
        return random_unitary(size, seed)
