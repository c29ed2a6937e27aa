"""Arithmetic of matrices, and their distances from orthogonality and unitarity.

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
from keras_ortho.checks import (
    check,
    check_all_finite,
    check_count,
    check_real,
    check_square,
)


def frobenius_norm(tensor: Tensor) -> Tensor:
    """Computes the norm of all entries of a tensor."""
    return ops.sqrt(ops.sum(tensor * tensor))


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

    The parts hold its entries above the diagonal. Up to `||A||_F = 1 / (8 eps)`, `A` is
    returned as it is, bit by bit.
    """
    for part in parts:  # The squares must not overflow.
        largest = ops.max(1e-15 * ops.abs(part), initial=1.0)
        parts = tuple(each / ops.stop_gradient(largest) for each in parts)
    unit = 8.0 * machine_epsilon(parts[0])
    total = sum(ops.sum(ops.square(unit * part)) for part in parts)
    norm = ops.sqrt(ops.maximum(2.0 * total, 1.0))
    return [part / norm for part in parts]


def placed(entries: Tensor, numbers: np.ndarray) -> Tensor:
    """Puts entries, numbered from 1, into an array with zeros where a number is 0."""
    zero = ops.zeros((1,), dtype=entries.dtype)
    return ops.take(ops.concatenate([zero, entries]), numbers)


def positions(rows: int, columns: int, diagonal: int = 0) -> np.ndarray:
    """Numbers the elements of an upper triangle from 1 in row order."""
    position = np.zeros((rows, columns), "int32")
    upper = np.triu_indices(rows, diagonal, columns)
    position[upper] = np.arange(1, len(upper[0]) + 1)
    return position


def upper_entries(matrix: Tensor, diagonal: int = 0) -> Tensor:
    """Reads the upper triangle of a matrix, in row order."""
    rows, columns = np.triu_indices(matrix.shape[0], diagonal, matrix.shape[1])
    position = (rows * matrix.shape[1] + columns).astype("int32")
    return ops.take(ops.reshape(matrix, (-1,)), position)


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
    if matrix.shape == (2 * units, 2 * units):
        real, imaginary = np.split(matrix[:units], 2, axis=1)
        lower = np.concatenate([-imaginary, real], axis=1)
        # The copies are exact, including any NaN of a model that has diverged.
        if np.array_equal(matrix[units:], lower, equal_nan=True):
            return real + 1j * imaginary
    raise ValueError(
        f"`{name}` must have the shape {(units, units)} or must be the real form of a "
        f"complex matrix of that shape, [[Re W, Im W], [-Im W, Re W]]. "
        f"Received: {name}.shape={matrix.shape}"
    )


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
    is_rounding = largest <= rounding_tolerance(len(matrix), matrix.dtype)
    wanted = f"be zero outside of its {heads} blocks"
    check(is_rounding, "matrix", wanted, f"an entry of {largest:.3g} there")
    return blocks


def orthogonality_error(matrix: Tensor) -> float:
    """Computes the distance from orthogonality, `||W^T W - I||_F`, in float64.

    Of a complex matrix, it is the distance from unitarity, `||W* W - I||_F`; of its
    real form, which layers with complex units have, `sqrt(2)` times that.

    Args:
        matrix: Tensor or array of shape `(n, n)`.

    Returns:
        The Frobenius norm, 0 for an orthogonal matrix.

    Raises:
        ValueError: If the matrix is not square.

    Example:
    >>> orthogonality_error(np.eye(3))
    0.0
    """
    matrix = np.asarray(ops.convert_to_numpy(matrix))
    matrix = matrix.astype("complex128" if np.iscomplexobj(matrix) else "float64")
    check_square("matrix", matrix)
    return float(np.linalg.norm(matrix.conj().T @ matrix - np.eye(len(matrix))))


def nearest_orthogonal(matrix: np.ndarray) -> np.ndarray:
    """Checks that a matrix is orthogonal up to rounding, and removes the rounding."""
    check_real("matrix", np.asarray(matrix))
    return nearest_unitary(matrix, "orthogonal").real


def nearest_unitary(matrix: np.ndarray, kind: str = "unitary") -> np.ndarray:
    """Checks that a matrix is unitary up to rounding, and removes the rounding."""
    matrix = np.asarray(matrix)
    check_square("matrix", matrix)
    check_all_finite("matrix", matrix)
    tolerance = rounding_tolerance(len(matrix), matrix.dtype)
    distance = orthogonality_error(matrix)
    if distance > tolerance:
        raise ValueError(
            f"`matrix` must be {kind}: ||W* W - I||_F at most {tolerance:.1e} in "
            f"{matrix.dtype}. The nearest such matrix is `scipy.linalg.polar(matrix)"
            f"[0]`. Received: a matrix with a distance of {distance:.1e}"
        )
    wide = matrix.astype(np.result_type(matrix.dtype, "float64"))
    left, _, right = np.linalg.svd(wide)
    return (left @ right).astype("complex128")


def random_orthogonal(size: int, seed: int | None = None) -> np.ndarray:
    """Draws an orthogonal matrix uniformly: Mezzadri, arXiv:math-ph/0609050."""
    size = check_count("size", size)
    return _haar(np.random.default_rng(seed).normal(size=(size, size)))


def random_unitary(size: int, seed: int | None = None) -> np.ndarray:
    """Draws a unitary matrix uniformly (Haar measure)."""
    size = check_count("size", size)
    real, imaginary = np.random.default_rng(seed).normal(size=(2, size, size))
    return _haar(real + 1j * imaginary)


def _haar(normal: np.ndarray) -> np.ndarray:
    """Returns the Q factor of a QR factorization whose R has a positive diagonal."""
    q, r = np.linalg.qr(normal)
    return q * (r.diagonal() / np.abs(r.diagonal()))
