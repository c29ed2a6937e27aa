"""Complex matrices as pairs of reals, for row vectors.

A row vector `a + ib` of `n` complex numbers is held as the `2n` reals `[a | b]`, and
so is each row of a matrix: its *rows* `[Re M | Im M]` have the shape `(m, 2n)`. To be
multiplied from the left a matrix is written out as its *block*
`[[Re M, Im M], [-Im M, Re M]]`: `[a | b] @ block` is `(a + ib) M`.
"""

import numpy as np
from keras import ops

from keras_ortho.backend.types import Tensor


def block(rows: Tensor) -> Tensor:
    """Writes a complex matrix out as a real one that row vectors multiply.

    Args:
        rows: Tensor of shape `(m, 2n)`, `[Re M | Im M]`.

    Returns:
        Tensor of shape `(2m, 2n)` and the same dtype.

    Example:
    >>> block(np.array([[1.0, 2.0]]))  # 1 + 2i
    [[1, 2], [-2, 1]]
    """
    real, imaginary = ops.split(rows, 2, axis=1)
    return ops.concatenate([rows, ops.concatenate([-imaginary, real], axis=1)])


def left_half(rows: Tensor) -> Tensor:
    """The first half of the columns of the block of a matrix, which holds the other.

    Args:
        rows: Tensor of shape `(m, 2n)`.

    Returns:
        Tensor of shape `(2m, n)`, `[[Re M], [-Im M]]`.
    """
    real, imaginary = ops.split(rows, 2, axis=1)
    return ops.concatenate([real, -imaginary])


def of_left_half(half: Tensor) -> Tensor:
    """The rows of the matrix whose block begins with some columns.

    Args:
        half: Tensor of shape `(2m, n)`, as `left_half` gives it.

    Returns:
        Tensor of shape `(m, 2n)`.
    """
    real, imaginary = ops.split(half, 2)
    return ops.concatenate([real, -imaginary], axis=1)


def adjoint(rows: Tensor) -> Tensor:
    """The conjugate transpose of a square matrix.

    Args:
        rows: Tensor of shape `(n, 2n)`.

    Returns:
        Tensor of the same shape and dtype.
    """
    real, imaginary = ops.split(rows, 2, axis=1)
    return ops.concatenate([ops.transpose(real), -ops.transpose(imaginary)], axis=1)


def product(left: Tensor, right: Tensor) -> Tensor:
    """The product of two complex matrices.

    Args:
        left: Tensor of shape `(k, 2m)`.
        right: Tensor of shape `(m, 2n)`.

    Returns:
        Tensor of shape `(k, 2n)`.
    """
    return ops.matmul(left, block(right))


def turn(rows: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """The product with a diagonal matrix of phases.

    Args:
        rows: Tensor of shape `(m, 2n)`.
        cosine: Real parts of the diagonal, of shape `(n,)` to multiply from the
            right, of shape `(m, 1)` to multiply from the left.
        sine: Imaginary parts of the diagonal, of the same shape.

    Returns:
        Tensor of the shape and dtype of `rows`.
    """
    real, imaginary = ops.split(rows, 2, axis=1)
    return ops.concatenate(
        [real * cosine - imaginary * sine, real * sine + imaginary * cosine], axis=1
    )


def complex_matrix(name: str, matrix: np.ndarray, units: int) -> np.ndarray:
    """Reads a complex matrix from an array of any of its forms.

    Args:
        name: Name of the argument, for the error.
        matrix: Real or complex array of shape `(n, n)`, or a real one of shape
            `(2n, 2n)` that is a block.
        units: Number of units `n`.

    Returns:
        Array of shape `(n, n)`: complex, or real where `matrix` was.

    Raises:
        ValueError: If it is of another shape, or no block.
    """
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
    # Whoever made it from real and imaginary parts copied them, NaN of a model that has
    # diverged, too.
    same = np.array_equal(real, right, equal_nan=True)
    if not (same and np.array_equal(imaginary, -lower, equal_nan=True)):
        raise ValueError(
            f"`{name}` of twice the units must be the real form of a complex matrix, "
            "[[Re W, Im W], [-Im W, Re W]]. Received: one that is not"
        )
    return real + 1j * imaginary
