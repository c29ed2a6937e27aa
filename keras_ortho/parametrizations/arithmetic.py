"""Arithmetic of matrices: safe at zero, infinity and NaN, complex, and of blocks.

A row vector `a + ib` is stored as `[a | b]`, and so is each row of a complex matrix:
its *rows* are `[Re M | Im M]`, of shape `(m, 2n)`. Row vectors multiply its *block*,
`[[Re M, Im M], [-Im M, Re M]]`.

The blocks of a block-diagonal matrix are one tensor of shape `(heads, k, k)`, or with
complex units `(heads, 2, k, 2, k)`: each appears in four places of the real form.
"""

import math
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend.types import Tensor


def frobenius_norm(tensor: Tensor) -> Tensor:
    """Computes the norm of all entries of a tensor."""
    return ops.sqrt(ops.sum(tensor * tensor))


def frobenius_norms(tensors: Tensor) -> Tensor:
    """Computes the Frobenius norm of each of several matrices."""
    return ops.sqrt(ops.sum(tensors * tensors, axis=(1, 2), keepdims=True))


def divide(numerator: Tensor, denominator: Tensor) -> Tensor:
    """Divides two tensors, by 1 where the denominator is zero."""
    one = ops.ones_like(denominator)
    return numerator / ops.where(denominator == 0, one, denominator)


def factorized(
    function: Callable[..., Tensor], matrix: Tensor, *rest: Tensor
) -> Tensor:
    """Calls `ops.inv` or `ops.solve`; NaN comes of NaN, where backends may raise."""
    finite = ops.all(ops.isfinite(matrix))
    identity = ops.eye(matrix.shape[0], dtype=matrix.dtype)
    found = function(ops.where(finite, matrix, identity), *rest)
    return ops.where(finite, found, math.nan)


def limited(*parts: Tensor) -> list[Tensor]:
    """Scales a skew `A` to the norm up to which rounding leaves the `I` of `I + A`.

    The parts hold its entries above the diagonal. If `||A||_F` exceeds `1 / (8 eps)`,
    it becomes that; otherwise `A` is returned as it is, bit by bit.
    """
    for part in parts:  # The squares must not overflow.
        largest = ops.max(1e-15 * ops.abs(part), initial=1.0)
        parts = tuple(each / ops.stop_gradient(largest) for each in parts)
    unit = 8.0 * machine_epsilon(parts[0])
    total = sum(ops.sum(ops.square(unit * part)) for part in parts)
    norm = ops.sqrt(ops.maximum(2.0 * total, 1.0))
    return [part / norm for part in parts]


def machine_epsilon(tensor: Tensor) -> float:
    """Returns the machine epsilon of the dtype of a tensor."""
    return float(np.finfo(keras.backend.standardize_dtype(tensor.dtype)).eps)


def rounding_tolerance(size: int, dtype: Any) -> float:
    """Returns the tolerance for rounding errors when a given matrix is checked."""
    kind = np.dtype(dtype)
    return 100 * size * float(np.finfo(kind if kind.kind in "fc" else "float64").eps)


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
    real, imaginary = np.split(matrix[:units], 2, axis=1)
    lower = np.concatenate([-imaginary, real], axis=1)
    # The copies are exact, including any NaN of a model that has diverged.
    if not np.array_equal(matrix[units:], lower, equal_nan=True):
        raise ValueError(
            f"`{name}` of twice the units must be the real form of a complex matrix, "
            "[[Re W, Im W], [-Im W, Re W]]. Received: another matrix"
        )
    return real + 1j * imaginary


def real_form(matrix: np.ndarray) -> np.ndarray:
    """Returns the block of a complex array."""
    return np.block([[matrix.real, matrix.imag], [-matrix.imag, matrix.real]])


def blocks_shape(heads: int, order: int, is_complex: bool) -> tuple[int, ...]:
    """Returns the shape of the blocks of a matrix."""
    return (heads, *((2, order) if is_complex else (order,)) * 2)


def block_diagonal(blocks: Tensor) -> Tensor:
    """Makes a block-diagonal matrix from its blocks."""
    is_complex = len(blocks.shape) == 5
    heads, order = blocks.shape[0], blocks.shape[-1]
    rule = "hpiqj,hg->phiqgj" if is_complex else "hij,hg->higj"
    spread = ops.einsum(rule, blocks, ops.eye(heads, dtype=blocks.dtype))
    size = heads * order * (2 if is_complex else 1)
    return ops.reshape(spread, (size, size))


def diagonal_blocks(matrix: np.ndarray, heads: int) -> tuple[np.ndarray, np.ndarray]:
    """Splits a matrix into its diagonal blocks and the rest."""
    order = len(matrix) // heads
    head = np.arange(len(matrix)) // order
    inside = head[:, None] == head
    blocks = matrix[inside].reshape(heads, order, order)
    return blocks, np.where(inside, 0, matrix)


def only_blocks(matrix: np.ndarray, heads: int) -> np.ndarray:
    """Returns the blocks of a block-diagonal matrix."""
    blocks, rest = diagonal_blocks(matrix, heads)
    largest = np.abs(rest).max()
    if not largest <= rounding_tolerance(len(matrix), matrix.dtype):
        raise ValueError(
            f"`matrix` must be zero outside of its {heads} blocks. Received: an entry "
            f"of {largest:.3g} there"
        )
    return blocks
