"""The dominant invariant subspace of a real matrix, by products of matrices only.

Squaring `T / ||T||` again and again gives a multiple of `T^N`, `N = 2^k`, in which all
but the eigenvalues of the largest modulus have died out: its column and its row space
become the dominant right and left invariant subspace. They are lines where the
dominant eigenvalue is real and planes where it is one of a complex pair, and the
products `T^N V` and `(T^N)^T V` with two columns `V` hold a basis of either. Which of
the two it is, the residual `||T Q - Q (Q^T T Q)||` tells: in a power of rank one the
second column is noise.

The first powers are spoilt least by rounding. So the subspace that a high one shows is
multiplied by `T^64` once more before it is looked at. The loop ends when the residual
is one of rounding, and the best subspace that it met is taken.

Where none is that good - rounding spoils the powers of a matrix that is far from
normal, and more than two eigenvalues may nearly tie - a block of columns goes on with
`T` itself: see `block_iteration`. That takes longer and is needed seldom.

The powers of a matrix that is very far from normal may vanish beside what they grow to
at first, and show no subspace. Such a matrix does not count as nilpotent: only one does
of which the pattern of the entries that are not zero makes a power vanish.
"""

import math
from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from keras_ortho.backend.compile import compiled
from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.arithmetic import (
    divide,
    frobenius_norm,
    machine_epsilon,
)
from keras_ortho.parametrizations.block_iteration import block_size, refine

# A subspace is looked for in this power, and after each so many squarings again.
FIRST_SQUARINGS = 6
SQUARINGS_A_CHECK = 2
# Enough to raise a gap of a few eps between moduli to one of order one.
MOST_SQUARINGS = {"float32": 24, "float64": 48}
# The residual where a power shows no subspace: more than any that one has.
NONE = 4.0


class Subspace(NamedTuple):
    """The dominant invariant subspace of a matrix `T`, and that of `T^T`.

    Attributes:
        right: Tensor of shape `(n, 2)`, the orthonormal columns `Q`. If the
            subspace is a line, it is that of the first one.
        left: Tensor of shape `(n, 2)`, the same for `T^T`.
        planar: Boolean scalar: whether the subspace is a plane.
        residual: Scalar, the larger of `||T Q - Q (Q^T T Q)||_F` and the same for
            `T^T`, relative to `||T||_F`; 4 if no subspace was found.
        growth: Scalar, `||T^N||_F^(1 / N)`. It tends to the spectral radius,
            whatever the eigenvalues.
        squarings: Scalar, how many it took.
        block_steps: Scalar, how many steps with a block of columns followed; -1 if
            there was no need of a block.
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
    # Of two columns. The second one is zero where they are dependent.
    first = _normalize(columns[:, 0])
    second = columns[:, 1]
    for _ in range(2):  # Once leaves the rounding errors of what it takes away.
        second = second - first * ops.sum(first * second)
    return ops.stack([first, _normalize(second)], axis=1)


def _residuals(matrix: Tensor, basis: Tensor) -> tuple[Tensor, Tensor]:
    # Of the first column, and of both.
    image = ops.matmul(matrix, basis)
    small = ops.matmul(ops.transpose(basis), image)
    line = frobenius_norm(image[:, 0] - basis[:, 0] * small[0, 0])
    plane = frobenius_norm(image - ops.matmul(basis, small))
    is_plane = ops.any(basis[:, 1] != 0)
    return line, ops.where(is_plane, plane, ops.full_like(plane, math.inf))


def _look(
    matrix: Tensor, first: Tensor, power: Tensor, start: Tensor
) -> tuple[Tensor, ...]:
    # The subspaces that a power shows: residual, right, left, planar.
    transposed = ops.transpose(matrix)
    right = _orthonormal(ops.matmul(power, start))
    right = _orthonormal(ops.matmul(first, right))
    left = _orthonormal(ops.matmul(ops.transpose(power), start))
    left = _orthonormal(ops.matmul(ops.transpose(first), left))
    of_right, of_left = _residuals(matrix, right), _residuals(transposed, left)
    line = ops.maximum(of_right[0], of_left[0])
    plane = ops.maximum(of_right[1], of_left[1])
    # Where both are, the plane is safer: of two eigenvalues that almost tie it holds
    # both, and the line something between their eigenvectors.
    rounding = _rounding(matrix)
    planar = (plane < line) | (plane <= rounding)
    residual = ops.where(planar, plane, line)
    there = _is_there(right) & _is_there(left) | (frobenius_norm(matrix) == 0)
    return ops.where(there, residual, NONE), right, left, planar


def _is_there(columns: Tensor) -> Tensor:
    # What is not a number is, too.
    return ops.logical_not(ops.sum(columns * columns) < 0.5)


def _is_nilpotent(matrix: Tensor) -> Tensor:
    # By the pattern of its entries alone: all paths from unit to unit end.
    paths = ops.cast(matrix != 0, matrix.dtype)
    for _ in range(math.ceil(math.log2(matrix.shape[0])) if matrix.shape[0] > 1 else 0):
        paths = ops.cast(ops.matmul(paths, paths) > 0, matrix.dtype)
    return ops.logical_not(ops.any(paths > 0))


def _rounding(matrix: Tensor) -> float:
    # Of sums of n products, relative to ||T||_F.
    return math.sqrt(matrix.shape[0]) * machine_epsilon(matrix)


@compiled
def _search(matrix: Tensor, start: Tensor) -> tuple[Tensor, ...]:
    dtype = keras.backend.standardize_dtype(matrix.dtype)
    norm = frobenius_norm(matrix)
    scaled = divide(matrix, norm)

    def square(power: Tensor, growth: Tensor, share: Tensor) -> tuple[Tensor, ...]:
        squared = ops.matmul(power, power)
        norm = frobenius_norm(squared)
        # Nothing is left of it: the growth so far is no less than the radius.
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
        # Not a number goes on, too, to the end.
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

    # The logarithm of the growth, and the weight 1 / N of that of the last norm.
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
        # Zeros and what is not finite are as they are.
        (best[0] > _rounding(matrix)) & (best[0] < math.inf),
        lambda: by_block(best, growth),
        lambda: (*best, growth, unneeded),
    )
    return right, left, planar, residual, ops.exp(growth), count, steps


def dominant_subspace(matrix: Tensor) -> Subspace:
    """Finds the subspace of the dominant eigenvalue, or of the dominant pair.

    Args:
        matrix: Tensor of shape `(n, n)`, float32 or float64.

    Returns:
        The subspace, right and left. Its residual is one of rounding unless so many
        eigenvalues share the largest modulus, to within rounding, that the block does
        not hold them all.

    Example:
    >>> subspace = dominant_subspace(np.diag([1.0, -3.0, 2.0]))
    >>> abs(subspace.right[:, 0])
    [0, 1, 0]
    """
    matrix = ops.convert_to_tensor(matrix)
    # In no special position to any subspace. The same to both sides, so that the two
    # subspaces of a symmetric matrix agree.
    size = matrix.shape[0]
    start = np.random.default_rng(0).normal(size=(size, max(2, block_size(size))))
    return Subspace(*_search(matrix, ops.cast(start, matrix.dtype)))
