"""Eigenvalues and eigenvectors of small real matrices, in real arithmetic.

The eigenvalues come from the QR algorithm with Francis's double shift, on the full
matrix. Each step is an orthogonal similarity transformation, so the algorithm is
backward stable. It is meant for matrices of a few dozen rows, and uses operations that
compile on every device, where `numpy.linalg.eig` has no counterpart.

Golub and Van Loan, "Matrix Computations", section 7.5.
"""

import numpy as np
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.arithmetic import (
    divide,
    frobenius_norm,
    frobenius_norms,
    machine_epsilon,
)
from keras_ortho.parametrizations.order_two import determinant, mean_and_discriminant

# Limit on the number of QR steps, per row. About three per eigenvalue are typical.
MOST_TURNS_A_ROW = 30
# Number of QR steps without a new eigenvalue after which other shifts are used once.
STALLED = 10


def _of_two(small: Tensor) -> tuple[Tensor, Tensor]:
    # Real and imaginary parts of the eigenvalues of a 2 x 2 matrix.
    mean, discriminant = mean_and_discriminant(small)
    root = ops.sqrt(ops.abs(discriminant))
    zero = ops.zeros_like(root)
    apart = ops.where(discriminant > 0, root, zero)
    imaginary = ops.where(discriminant > 0, zero, root)
    return ops.stack([mean + apart, mean - apart]), ops.stack([imaginary, -imaginary])


def eigenvalues(matrix: Tensor) -> Tensor:
    """Computes all eigenvalues, real and imaginary parts `(2, p)`; 0 for NaN."""
    size = matrix.shape[0]
    identity = ops.eye(size, dtype=matrix.dtype)
    rows = ops.arange(size, dtype="int32")
    negligible = machine_epsilon(matrix) * frobenius_norm(matrix)

    def turn(small: Tensor, active: Tensor, stalled: Tensor) -> Tensor:
        # The shifts are the eigenvalues of the last two rows.
        last = ops.cast(rows == active - 1, matrix.dtype)
        before = ops.cast(rows == active - 2, matrix.dtype)
        ends = ops.stack([before, last])
        corner = ops.matmul(ends, ops.matmul(small, ops.transpose(ends)))
        trace = corner[0, 0] + corner[1, 1]
        product = determinant(corner)
        # Exceptional shifts, if these lead to a cycle, as for a permutation matrix.
        far = frobenius_norm(ops.matmul(ends, small))
        circle = ops.equal(stalled % STALLED, STALLED - 1)
        trace = ops.where(circle, 0.75 * far, trace)
        product = ops.where(circle, 0.4375 * far * far, product)
        inside = ops.cast(rows < active, matrix.dtype)
        window = inside[:, None] * inside[None, :]
        block = small * window
        shifted = ops.matmul(block, block) - trace * block + product * identity
        shifted = ops.where(window > 0, shifted, identity)
        basis = ops.qr(shifted)[0]
        return ops.matmul(ops.transpose(basis), ops.matmul(small, basis))

    def step(turns: Tensor, stalled: Tensor, active: Tensor, *rest: Tensor) -> tuple:
        small, values = rest
        column = ops.cast(rows < active - 1, matrix.dtype)
        columns = ops.cast(rows < active - 2, matrix.dtype)
        last = ops.cast(rows == active - 1, matrix.dtype)
        before = ops.cast(rows == active - 2, matrix.dtype)
        ends = ops.stack([before, last])
        edge = ops.matmul(ends, small)
        corner = ops.matmul(edge, ops.transpose(ends))
        one = frobenius_norm(edge[1] * column) <= negligible
        two = frobenius_norm(edge * columns) <= negligible
        pair = ops.matmul(ops.stack(_of_two(corner)), ends)
        single = ops.stack([corner[1, 1] * last, ops.zeros_like(last)])
        found = ops.where(one, single, ops.where(two, pair, ops.zeros_like(pair)))
        taken = ops.where(one, 1, ops.where(two, 2, 0))
        taken = ops.cast(taken, "int32")
        small = ops.where(taken > 0, small, turn(small, active, stalled))
        stalled = ops.where(taken > 0, ops.zeros_like(stalled), stalled + 1)
        return turns + 1, stalled, active - taken, small, values + found

    def goes_on(
        turns: Tensor, stalled: Tensor, active: Tensor, *rest: Tensor
    ) -> Tensor:
        return (active > 0) & (turns < MOST_TURNS_A_ROW * size)

    zero = ops.convert_to_tensor(0, dtype="int32")
    start = (zero, zero, ops.convert_to_tensor(size, dtype="int32"))
    values = ops.zeros((2, size), dtype=matrix.dtype)
    return ops.while_loop(goes_on, step, (*start, matrix, values))[4]


def dominant_of(values: Tensor) -> tuple[Tensor, Tensor]:
    """Picks the eigenvalue with the largest modulus."""
    squares = values[0] * values[0] + values[1] * values[1]
    which = ops.argmax(squares)
    return ops.take(values[0], which), ops.abs(ops.take(values[1], which))


def vectors_of(matrices: Tensor, real: Tensor, imaginary: Tensor) -> Tensor:
    """Finds an eigenvector of each matrix for an eigenvalue that all of them share.

    It is the right singular vector of `A - lambda I` for the smallest singular value,
    from two steps of inverse iteration with `(A - lambda I)* (A - lambda I)`. Inverse
    iteration with `A - lambda I` itself may increase the residual if `A` is not normal.
    """
    count, size = matrices.shape[0], matrices.shape[1]
    triangles = ops.qr(shifted_matrices(matrices, real, imaginary))[1]
    triangles = with_pivots(triangles)
    adjoint = ops.transpose(triangles, (0, 2, 1))
    # A start vector in general position.
    start = np.concatenate([np.cos(1.0 + 1.7 * np.arange(size)), np.zeros(size)])
    vectors = np.tile(start[None, :, None], (count, 1, 1))
    vectors = ops.convert_to_tensor(vectors, dtype=matrices.dtype)

    def step(_: Tensor, vectors: Tensor) -> Tensor:
        vectors = ops.solve_triangular(adjoint, vectors, lower=True)
        vectors = divide(vectors, frobenius_norms(vectors))
        vectors = ops.solve_triangular(triangles, vectors)
        return divide(vectors, frobenius_norms(vectors))

    vectors = ops.fori_loop(0, 2, step, vectors)
    return ops.transpose(ops.reshape(vectors, (count, 2, size)), (0, 2, 1))


def with_pivots(triangles: Tensor) -> Tensor:
    """Replaces vanishing pivots by pivots of the size of rounding errors."""
    least = machine_epsilon(triangles) * frobenius_norms(triangles)[..., 0]
    least = ops.where(least == 0, ops.ones_like(least), least)
    pivots = ops.diagonal(triangles, axis1=-2, axis2=-1)
    pivots = ops.where(ops.abs(pivots) < least, least - pivots, 0.0 * pivots)
    identity = ops.eye(triangles.shape[1], dtype=triangles.dtype)
    return triangles + pivots[..., None] * identity


def shifted_matrices(matrices: Tensor, real: Tensor, imaginary: Tensor) -> Tensor:
    """Builds the real form of `A - (a + b i) I`, for vectors `[Re u; Im u]`."""
    identity = ops.eye(matrices.shape[1], dtype=matrices.dtype)
    shifted = matrices - real * identity
    turned = imaginary * identity + ops.zeros_like(matrices)
    upper = ops.concatenate([shifted, turned], axis=2)
    lower = ops.concatenate([-turned, shifted], axis=2)
    return ops.concatenate([upper, lower], axis=1)
