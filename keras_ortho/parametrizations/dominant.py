"""The dominant invariant subspace of a real matrix, by matrix products only.

Repeated squaring of `T / ||T||` gives a multiple of `T^N`, `N = 2^k`, in which only the
eigenvalues of largest modulus survive: its column space and row space converge to the
dominant right and left invariant subspaces. These are lines if the dominant eigenvalue
is real, and planes if it belongs to a complex pair. In either case, the products
`T^N V` and `(T^N)^T V` with two columns `V` contain a basis. The residual
`||T Q - Q (Q^T T Q)||` shows which case it is: in a power of rank one, the second
column is noise.

Low powers suffer least from rounding. The subspace found in a high power is therefore
multiplied by `T^64` once more before its residual is computed. The loop ends when the
residual reaches rounding level, and the best subspace found is used.

If no residual is that small, because rounding errors spoil the powers of a matrix far
from normal or more than two eigenvalues nearly tie, an iteration with a block of
columns and `T` itself follows: see `block_iteration`. It takes longer and is seldom
needed.

If a matrix is very far from normal, its powers may become negligible compared to their
initial growth, and reveal no subspace. Such a matrix does not count as nilpotent. A
matrix counts as nilpotent only if the pattern of its nonzero entries makes a power
vanish.
"""

import math
from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from keras_ortho.backend import compiled
from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.arithmetic import (
    divide,
    frobenius_norm,
    machine_epsilon,
)
from keras_ortho.parametrizations.block_iteration import block_size, refine

# Squarings before the first check for a subspace, and between later checks.
FIRST_SQUARINGS = 6
SQUARINGS_A_CHECK = 2
# Enough to amplify a gap of a few eps between moduli to order one.
MOST_SQUARINGS = {"float32": 24, "float64": 48}
# The residual if a power reveals no subspace: larger than that of any subspace.
NONE = 4.0


class Subspace(NamedTuple):
    """Dominant invariant subspaces of a matrix `T` and of its transpose.

    Attributes:
        right: Tensor of shape `(n, 2)`: the orthonormal columns `Q` of the subspace of
            `T`. If the subspace is a line, the first column spans it.
        left: Tensor of shape `(n, 2)`: the same for `T^T`.
        planar: Boolean scalar: whether the subspace is a plane.
        residual: Scalar: the larger of `||T Q - Q (Q^T T Q)||_F` and the same for
            `T^T`, relative to `||T||_F`; 4 if no subspace was found.
        growth: Scalar: `||T^N||_F^(1 / N)`, which converges to the spectral radius,
            whatever the eigenvalues.
        squarings: Scalar: the number of squarings.
        block_steps: Scalar: the number of steps of the block iteration; -1 if it was
            not needed.
    """

    right: Tensor
    left: Tensor
    planar: Tensor
    residual: Tensor
    growth: Tensor
    squarings: Tensor
    block_steps: Tensor


def _normalize(tensor: Tensor) -> Tensor:
    return divide(tensor, frobenius_norm(tensor))


def _orthonormal(columns: Tensor) -> Tensor:
    # Orthonormalizes two columns. If they are dependent, the second becomes zero.
    first = _normalize(columns[:, 0])
    second = columns[:, 1]
    for _ in range(2):  # A single pass would leave rounding errors.
        second = second - first * ops.sum(first * second)
    return ops.stack([first, _normalize(second)], axis=1)


def _residuals(matrix: Tensor, basis: Tensor) -> tuple[Tensor, Tensor]:
    # The residual of the first column, and that of both.
    image = ops.matmul(matrix, basis)
    small = ops.matmul(ops.transpose(basis), image)
    line = frobenius_norm(image[:, 0] - basis[:, 0] * small[0, 0])
    plane = frobenius_norm(image - ops.matmul(basis, small))
    is_plane = ops.any(basis[:, 1] != 0)
    return line, ops.where(is_plane, plane, ops.full_like(plane, math.inf))


def _look(
    matrix: Tensor, first: Tensor, power: Tensor, start: Tensor
) -> tuple[Tensor, ...]:
    # The subspaces found in a power: residual, right, left, planar.
    transposed = ops.transpose(matrix)
    right = _orthonormal(ops.matmul(power, start))
    right = _orthonormal(ops.matmul(first, right))
    left = _orthonormal(ops.matmul(ops.transpose(power), start))
    left = _orthonormal(ops.matmul(ops.transpose(first), left))
    of_right, of_left = _residuals(matrix, right), _residuals(transposed, left)
    line = ops.maximum(of_right[0], of_left[0])
    plane = ops.maximum(of_right[1], of_left[1])
    # If both residuals are at rounding level, the plane is safer: if two eigenvalues
    # nearly tie, it contains both eigenvectors, but the line is a mixture of them.
    rounding = _rounding(matrix)
    planar = (plane < line) | (plane <= rounding)
    residual = ops.where(planar, plane, line)
    there = _is_there(right) & _is_there(left) | (frobenius_norm(matrix) == 0)
    return ops.where(there, residual, NONE), right, left, planar


def _is_there(columns: Tensor) -> Tensor:
    # Also true for NaN.
    return ops.logical_not(ops.sum(columns * columns) < 0.5)


def _is_nilpotent(matrix: Tensor) -> Tensor:
    # By the pattern of nonzero entries alone: all paths from unit to unit end.
    paths = ops.cast(matrix != 0, matrix.dtype)
    for _ in range(math.ceil(math.log2(matrix.shape[0])) if matrix.shape[0] > 1 else 0):
        paths = ops.cast(ops.matmul(paths, paths) > 0, matrix.dtype)
    return ops.logical_not(ops.any(paths > 0))


def _rounding(matrix: Tensor) -> float:
    # Rounding level of sums of n products, relative to ||T||_F.
    return math.sqrt(matrix.shape[0]) * machine_epsilon(matrix)


@compiled
def _search(matrix: Tensor, start: Tensor) -> tuple[Tensor, ...]:
    dtype = keras.backend.standardize_dtype(matrix.dtype)
    norm = frobenius_norm(matrix)
    scaled = divide(matrix, norm)

    def square(power: Tensor, growth: Tensor, share: Tensor) -> tuple[Tensor, ...]:
        squared = ops.matmul(power, power)
        norm = frobenius_norm(squared)
        # If the square vanishes, the growth so far is kept, as an upper bound.
        ends = (norm == 0) & (frobenius_norm(power) > 0)
        grown = growth + 0.5 * share * ops.log(norm)
        return (
            ops.where(ends, power, divide(squared, norm)),
            ops.where(ends, growth, grown),
            ops.where(ends, share, 0.5 * share),
        )

    def step(count: Tensor, *values: Tensor) -> tuple[Tensor, ...]:
        powers, best = values[:3], values[3:]
        for _ in range(SQUARINGS_A_CHECK):
            powers = square(*powers)
        found = _look(scaled, first, powers[0], start[:, :2])
        better = found[0] < best[0]
        best = tuple(
            ops.where(better, new, old) for new, old in zip(found, best, strict=True)
        )
        return count + SQUARINGS_A_CHECK, *powers, *best

    def goes_on(count: Tensor, *values: Tensor) -> Tensor:
        # With NaN, the loop runs to its end.
        converged = values[3] <= _rounding(matrix)
        return (count < MOST_SQUARINGS[dtype]) & ops.logical_not(converged)

    def by_block(best: tuple[Tensor, ...], growth: Tensor) -> tuple[Tensor, ...]:
        blocks = [
            ops.concatenate([basis, ops.matmul(power, start[:, 2:])], axis=1)
            for basis, power in ((best[1], first), (best[2], ops.transpose(first)))
        ]
        u, v, planar, residual, steps = refine(
            scaled, blocks[0], blocks[1], _rounding(matrix)
        )
        residual = ops.where(_is_there(u) & _is_there(v), residual, NONE)
        found = (residual, _orthonormal(u), _orthonormal(v), planar)
        better = residual <= best[0]
        best = tuple(
            ops.where(better, new, old) for new, old in zip(found, best, strict=True)
        )
        nilpotent = _is_nilpotent(matrix)
        residual, right, left, planar = best
        return (
            *(ops.where(nilpotent, 0.0 * x, x) for x in (residual, right, left)),
            planar,
            ops.where(nilpotent, -math.inf * ops.ones_like(growth), growth),
            steps,
        )

    # The power, the log of the growth, and 1 / N, the weight of the last log norm.
    powers = (scaled, ops.log(norm), ops.ones_like(norm))
    for _ in range(FIRST_SQUARINGS):
        powers = square(*powers)
    first = powers[0]
    count = ops.convert_to_tensor(FIRST_SQUARINGS, dtype="int32")
    best = _look(scaled, first, first, start[:, :2])
    values = ops.while_loop(goes_on, step, (count, *powers, *best))
    count, growth, best = values[0], values[2], values[4:]
    unneeded = ops.convert_to_tensor(-1, dtype="int32")
    residual, right, left, planar, growth, steps = ops.cond(
        # Not for zero and non-finite matrices.
        (best[0] > _rounding(matrix)) & (best[0] < math.inf),
        lambda: by_block(best, growth),
        lambda: (*best, growth, unneeded),
    )
    return right, left, planar, residual, ops.exp(growth), count, steps


def dominant_subspace(matrix: Tensor) -> Subspace:
    """Finds the invariant subspace of the dominant eigenvalue or complex pair."""
    matrix = ops.convert_to_tensor(matrix)
    # Random columns, in no special position to any subspace. Both sides use the same
    # ones, so that the two subspaces of a symmetric matrix agree.
    size = matrix.shape[0]
    start = np.random.default_rng(0).normal(size=(size, max(2, block_size(size))))
    return Subspace(*_search(matrix, ops.cast(start, matrix.dtype)))
