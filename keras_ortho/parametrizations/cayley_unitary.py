"""The scaled Cayley transform of complex matrices: free reals to a unitary matrix.

    W = (I + A)^-1 (I - A) D

with `A = S + i Y` skew-Hermitian: `S` real and skew-symmetric, `Y` real and symmetric;
and `D` a diagonal of trained phases. Maduranga, Helfrich and Ye, "Complex unitary
recurrent neural networks using scaled Cayley transform", AAAI 2019.
"""

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend import with_gradient
from keras_ortho.backend.angles import cos, sin
from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.complex_rows import (
    adjoint,
    block,
    product,
    turn,
)
from keras_ortho.parametrizations.kahan_unitary import scaled_cayley_unitary_inverse
from keras_ortho.parametrizations.orthogonality import random_unitary
from keras_ortho.parametrizations.skew import (
    HenaffSkew,
    matrix_size,
    num_entries,
    skew_matrix,
    upper_entries,
)


def symmetric_matrix(entries: Tensor) -> Tensor:
    """Builds a symmetric matrix from its upper triangle.

    Args:
        entries: Tensor of shape `(n (n + 1) / 2,)`, in row order, the diagonal
            included.

    Returns:
        Tensor of shape `(n, n)` and the same dtype.

    Example:
    >>> symmetric_matrix(np.array([1.0, 2.0, 3.0]))
    [[1, 2], [2, 3]]
    """
    size = matrix_size(entries.shape[0]) - 1
    rows, columns = np.triu_indices(size)
    position = np.zeros((size, size), "int32")
    position[rows, columns] = np.arange(len(rows))
    position[columns, rows] = position[rows, columns]
    return ops.take(entries, position)


def _upper_entries_with_diagonal(matrix: Tensor) -> Tensor:
    size = matrix.shape[0]
    rows, columns = np.triu_indices(size)
    position = (rows * size + columns).astype("int32")
    return ops.take(ops.reshape(matrix, (-1,)), position)


def _forward(skew: Tensor, symmetric: Tensor) -> tuple[Tensor, Tensor]:
    # [Re A | Im A], whose block is real and skew-symmetric.
    rows = ops.concatenate([skew_matrix(skew), symmetric_matrix(symmetric)], axis=1)
    size = rows.shape[0]
    identity = ops.eye(2 * size, dtype=rows.dtype)
    # The first half of the columns of a block holds the other.
    half = ops.solve(identity + block(rows), identity[:, :size])
    real, imaginary = ops.split(half, 2)
    inverse = ops.concatenate([real, -imaginary], axis=1)
    # One step of Newton and Schulz, as in the real transform.
    transpose = adjoint(inverse)
    defect = inverse + transpose - 2.0 * product(transpose, inverse)
    inverse = inverse + (product(inverse, defect) - 0.5 * defect)
    return inverse, inverse


def _backward(inverse: Tensor, upstream: Tensor) -> tuple[Tensor, Tensor]:
    # dX = -X dA X. With G = dL/dRe X + i dL/dIm X a change of A changes L by
    # Re tr(Q dA), Q = -X G* X: nothing needs to be factorized again.
    q = -product(product(inverse, adjoint(upstream)), inverse)
    real, imaginary = ops.split(q, 2, axis=1)
    skew = upper_entries(ops.transpose(real) - real)
    # An entry off the diagonal stands in two places.
    places = 1.0 - 0.5 * ops.eye(inverse.shape[0], dtype=inverse.dtype)
    symmetric = -places * (imaginary + ops.transpose(imaginary))
    return skew, _upper_entries_with_diagonal(symmetric)


# The rows of X = (I + A)^-1
_shifted_inverse = with_gradient(_forward, _backward)


def scaled_cayley_unitary(skew: Tensor, symmetric: Tensor, phases: Tensor) -> Tensor:
    """The scaled Cayley transform `W = (I + A)^-1 (I - A) D`, unitary.

    One factorization of a real matrix of order `2n` serves the value and the
    gradient; a step of Newton and Schulz takes away what rounding adds to it. The block
    of `I + A` has singular values of at least 1, as `I + A` has.

    Args:
        skew: Tensor of shape `(n (n - 1) / 2,)`: the strict upper triangle of
            `Re A` in row order, float32 or float64.
        symmetric: Tensor of shape `(n (n + 1) / 2,)`: the upper triangle of `Im A`,
            the diagonal included, in row order.
        phases: Tensor of shape `(n,)`: the angles of the diagonal of `D`, in
            radians.

    Returns:
        The unitary matrix as the real `[[Re W, Im W], [-Im W, Re W]]`, of shape
        `(2n, 2n)` and the dtype of the arguments.

    Raises:
        ValueError: If the shapes do not agree.

    Example:
    >>> scaled_cayley_unitary(np.zeros(0), np.array([1.0]), np.array([0.0]))  # -i
    [[0, -1], [1, 0]]

    Reference:

    - [Maduranga et al., 2019](https://arxiv.org/abs/1811.04142), theorem 1
    """
    size = phases.shape[0]
    found = (tuple(skew.shape), tuple(symmetric.shape))
    if found != ((num_entries(size),), (num_entries(size + 1),)):
        raise ValueError(
            "`skew` and `symmetric` must hold n (n - 1) / 2 and n (n + 1) / 2 free "
            f"entries for the n phases. Received: skew.shape={found[0]}, "
            f"symmetric.shape={found[1]}, phases.shape={tuple(phases.shape)}"
        )
    inverse = _shifted_inverse(skew, symmetric)
    # (I + A)^-1 (I - A) = 2 (I + A)^-1 - I: rounding harms the right side less.
    identity = ops.eye(size, 2 * size, dtype=inverse.dtype)
    return block(turn(2.0 * inverse - identity, cos(phases), sin(phases)))


@keras.saving.register_keras_serializable(package="keras_ortho")
class ScaledCayleyUnitary(Parametrization):
    """All unitary matrices, by the scaled Cayley transform: scuRNN's.

    Example:
    >>> ScaledCayleyUnitary().distance(1j * np.eye(3))
    0.0
    """

    is_complex = True
    takes = "skew entries"

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the free entries of `A` and the phases of `D`."""
        skew, symmetric = num_entries(size), num_entries(size + 1)
        phases = keras.initializers.RandomUniform(0.0, 2 * math.pi)
        return [
            FreeVariable("recurrent_skew_real", (skew,), initializer or HenaffSkew()),
            FreeVariable(
                "recurrent_skew_imag", (symmetric,), keras.initializers.Zeros()
            ),
            FreeVariable("recurrent_phases", (size,), phases),
        ]

    def matrix(self, *values: Tensor) -> Tensor:
        """Makes `W = (I + A)^-1 (I - A) D` in its real form."""
        return scaled_cayley_unitary(*values)

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds `A` and `D`, of any unitary matrix."""
        return scaled_cayley_unitary_inverse(matrix)

    def sample(self, size: int, seed: int | None = None) -> np.ndarray:
        """Draws a unitary matrix, each as likely."""
        return random_unitary(size, seed)
