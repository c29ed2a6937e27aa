"""Subspace iteration with a block of columns, for when powers of the matrix fail.

Each step multiplies an orthonormal block by the matrix and orthonormalizes the result.
The rounding errors are therefore those of a single product, however large the powers of
the matrix grow. The Ritz values, the eigenvalues of the matrix projected onto the
block, separate eigenvalues that nearly tie. Golub and Van Loan, "Matrix Computations",
section 7.3.
"""

import math

import keras
from keras import ops

from keras_ortho.backend import traced_once
from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.arithmetic import (
    divide,
    frobenius_norms,
    machine_epsilon,
)
from keras_ortho.parametrizations.small_eigenvalues import (
    dominant_of,
    eigenvalues,
    shifted_matrices,
    vectors_of,
    with_pivots,
)

# Steps before the second look (the first takes none); twice as many before each one
# that follows.
FIRST_STEPS = 4
NEWTON_STEPS = 2
MOST_LOOKS = {"float32": 9, "float64": 10}
# The iteration gives up if, twice in a row, doubling the steps leaves at least this
# fraction of the error: more eigenvalues tie than the block has columns. It does so
# only from look `IDLE_FROM` on, as the initial growth of the powers of the matrix is
# over within `FIRST_STEPS 2^3` steps.
LEAST_GAIN, IDLE_FROM = 0.8, 4


def block_size(size: int) -> int:
    """Returns the number of columns of the block."""
    return min(size, 16 if size < 300 else 32)


def _residuals(both: Tensor, vectors: Tensor, values: tuple) -> Tensor:
    # T u - lambda u, real and imaginary parts.
    real, imaginary = values
    turned = ops.stack([-vectors[..., 1], vectors[..., 0]], axis=2)
    return ops.matmul(both, vectors) - real * vectors - imaginary * turned


def _look(both: Tensor, blocks: Tensor) -> tuple[Tensor, ...]:
    # The dominant Ritz pairs: vectors, residuals, real and imaginary parts of values.
    small = ops.matmul(ops.transpose(blocks, (0, 2, 1)), ops.matmul(both, blocks))
    # Both sides use the same eigenvalue, in case several have this modulus.
    real, imaginary = dominant_of(eigenvalues(small[0]))
    vectors = ops.matmul(blocks, vectors_of(small, real, imaginary))
    values = tuple(x + ops.zeros((2, 1, 1), both.dtype) for x in (real, imaginary))
    return vectors, frobenius_norms(_residuals(both, vectors, values)), *values


def _newton(both: Tensor, pairs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    # One Newton step for T u = lambda u in real arithmetic, with the change of u
    # orthogonal to u. At a simple eigenvalue, the border makes the system nonsingular.
    vectors, errors, *values = pairs
    size = both.shape[1]
    a, b = vectors[..., :1], vectors[..., 1:]
    border = ops.concatenate(
        [ops.concatenate([a, -b], axis=2), ops.concatenate([b, a], axis=2)], axis=1
    )
    corner = ops.zeros((2, 2, 2), dtype=both.dtype)
    right = ops.concatenate([-border, corner], axis=1)
    system = ops.concatenate(
        [shifted_matrices(both, *values), ops.transpose(border, (0, 2, 1))], axis=1
    )
    system = ops.concatenate([system, right], axis=2)
    defects = ops.transpose(_residuals(both, vectors, tuple(values)), (0, 2, 1))
    defects = ops.reshape(defects, (2, 2 * size, 1))
    defects = ops.concatenate([defects, corner[..., :1]], axis=1)
    # The system is singular if more eigenvalues tie, or nearly so if the matrix is far
    # from normal. Some backends then raise an error in `solve`, so QR is used.
    basis, triangle = ops.qr(system)
    defects = ops.matmul(ops.transpose(basis, (0, 2, 1)), defects)
    change = ops.solve_triangular(with_pivots(triangle), -defects)
    moved = ops.reshape(change[:, : 2 * size], (2, 2, size))
    moved = vectors + ops.transpose(moved, (0, 2, 1))
    moved = divide(moved, frobenius_norms(moved))
    shifted = (values[0] + change[:, -2:-1], values[1] + change[:, -1:])
    found = (moved, frobenius_norms(_residuals(both, moved, shifted)), *shifted)
    return _better(found[1] < errors, found, pairs)


def _better(is_better: Tensor, new: tuple, old: tuple) -> tuple[Tensor, ...]:
    return tuple(ops.where(is_better, x, y) for x, y in zip(new, old, strict=True))


@traced_once
def refine(matrix: Tensor, right: Tensor, left: Tensor, goal: float) -> tuple:
    """Finds the dominant eigenvectors of a matrix, starting from given blocks."""
    # T and T^T are processed together.
    both = ops.stack([matrix, ops.transpose(matrix)])
    small_enough = machine_epsilon(matrix) ** 0.5
    most_looks = MOST_LOOKS[keras.backend.standardize_dtype(matrix.dtype)]
    if right.shape[1] == matrix.shape[0]:
        most_looks = 1

    def advance(count: Tensor, blocks: Tensor) -> tuple:
        return count + 1, ops.qr(ops.matmul(both, blocks))[0]

    def step(
        looks: Tensor, taken: Tensor, idle: Tensor, ended: Tensor, *rest: Tensor
    ) -> tuple:
        blocks, best = rest[0], rest[1:]
        more = ops.where(looks > 0, FIRST_STEPS * 2 ** ops.maximum(looks - 1, 0), 0)
        blocks = ops.while_loop(
            lambda count, _: count < more, advance, (ops.zeros_like(taken), blocks)
        )[1]
        found = _look(both, blocks)
        error, least = ops.max(found[1]), ops.max(best[1])
        # Rounding sets a floor for the error, above the goal if the powers grow.
        ended = (error >= 0.5 * least) & (least <= small_enough)
        gains = (error < LEAST_GAIN * least) | (looks < IDLE_FROM)
        idle = ops.where(gains, 0, idle + 1)
        best = _better(error < least, found, best)
        return looks + 1, taken + more, ops.cast(idle, "int32"), ended, blocks, *best

    def goes_on(
        looks: Tensor, taken: Tensor, idle: Tensor, ended: Tensor, *rest: Tensor
    ) -> Tensor:
        converged = ended | (ops.max(rest[2]) <= goal)
        return (looks < most_looks) & (idle < 2) & ops.logical_not(converged)

    zero = ops.convert_to_tensor(0, dtype="int32")
    nothing = ops.zeros((2, 1, 1), dtype=matrix.dtype)
    blocks = ops.qr(ops.stack([right, left]))[0]
    vectors = ops.zeros((2, matrix.shape[0], 2), dtype=matrix.dtype)
    unknown = (vectors, nothing + math.inf, nothing, nothing)
    values = ops.while_loop(
        goes_on,
        step,
        (zero, zero, zero, ops.convert_to_tensor(False), blocks, *unknown),
    )
    # Newton steps reduce the residual from this floor to rounding level.
    pairs = ops.fori_loop(
        0, NEWTON_STEPS, lambda _, pairs: _newton(both, pairs), values[5:]
    )
    vectors, errors, _, imaginary = pairs
    return vectors[0], vectors[1], imaginary[0, 0, 0] != 0, ops.max(errors), values[1]
