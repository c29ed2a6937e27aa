"""Complex matrices in real arithmetic, for row vectors.

A row vector `a + ib` of `n` complex numbers is stored as the `2n` real numbers
`[a | b]`, and so is each row of a matrix: its *rows* `[Re M | Im M]` have the shape
`(m, 2n)`. For multiplication by row vectors, a matrix is expanded to its *block*
`[[Re M, Im M], [-Im M, Re M]]`: `[a | b] @ block` is `(a + ib) M`.
"""

import numpy as np
from keras import ops

from keras_ortho.backend.types import Tensor


def block(rows: Tensor) -> Tensor:
    """Expands the rows of a complex matrix to its block."""
    real, imaginary = ops.split(rows, 2, axis=1)
    return ops.concatenate([rows, ops.concatenate([-imaginary, real], axis=1)])


def left_half(rows: Tensor) -> Tensor:
    """Returns the left half of the columns of a block, which determines the rest."""
    real, imaginary = ops.split(rows, 2, axis=1)
    return ops.concatenate([real, -imaginary])


def of_left_half(half: Tensor) -> Tensor:
    """Returns the rows of a matrix from the left half of its block."""
    real, imaginary = ops.split(half, 2)
    return ops.concatenate([real, -imaginary], axis=1)


def adjoint(rows: Tensor) -> Tensor:
    """Computes the conjugate transpose of a square complex matrix."""
    real, imaginary = ops.split(rows, 2, axis=1)
    return ops.concatenate([ops.transpose(real), -ops.transpose(imaginary)], axis=1)


def product(left: Tensor, right: Tensor) -> Tensor:
    """Computes the product of two complex matrices."""
    return ops.matmul(left, block(right))


def turn(rows: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Computes the product of a complex matrix and a diagonal matrix of phases."""
    real, imaginary = ops.split(rows, 2, axis=1)
    return ops.concatenate(
        [real * cosine - imaginary * sine, real * sine + imaginary * cosine], axis=1
    )


def complex_matrix(name: str, matrix: np.ndarray, units: int) -> np.ndarray:
    """Returns a complex matrix, given as it is or in its real form."""
    if matrix.shape == (units, units):
        return matrix
    if matrix.shape != (2 * units, 2 * units):
        raise ValueError(
            f"`{name}` must have the shape {(units, units)} or, for the real form of "
            f"a complex matrix, {(2 * units, 2 * units)}. "
            f"Received: {name}.shape={matrix.shape}"
        )
    (real, imaginary), (lower, right) = (
        np.split(half, 2, axis=1) for half in np.split(matrix, 2)
    )
    # A block contains exact copies of both parts, including any NaN of a model that has
    # diverged.
    same = np.array_equal(real, right, equal_nan=True)
    if not (same and np.array_equal(imaginary, -lower, equal_nan=True)):
        raise ValueError(
            f"`{name}` of twice the units must be the real form of a complex matrix, "
            "[[Re W, Im W], [-Im W, Re W]]. Received: another matrix"
        )
    return real + 1j * imaginary
