"""The dominant invariant subspaces of a real matrix, mostly by repeated squaring.

Squaring `T / ||T||` gives a multiple of `T^N`, `N = 2^k`, in which only the eigenvalues
of largest modulus survive: its columns and rows span the dominant right and left
invariant subspaces. These are lines if the dominant eigenvalue is real, and planes if
it belongs to a complex pair or nearly ties with another real one. The residual
`||T Q - Q (Q^T T Q)||` distinguishes the two, and ends the loop at rounding level.

The powers of a matrix far from normal grow before they decay, which amplifies rounding
errors, and near ties do so, too. Then the columns are multiplied by `T` itself, which
is backward stable, and a few steps of inverse iteration follow.
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
    frobenius_norms,
    machine_epsilon,
)

# Enough to amplify a gap of a few eps between moduli to order one.
MOST_SQUARINGS = {"float32": 24, "float64": 48}
# Products between two orthonormalizations.
PRODUCTS = 8
# Each look at the columns follows twice as many products as the last. From look
# `IDLE_FROM` on, the search gives up if the residual falls by less than a fifth.
MOST_LOOKS, IDLE_FROM, LEAST_GAIN = 9, 4, 0.8
INVERSE_STEPS = 3


class Subspace(NamedTuple):
    """Dominant subspaces of a matrix `T` of norm 1 and, second, of `T^T`."""

    bases: Tensor  # (2, n, 2), orthonormal; of a line, the second column is zero.
    planar: Tensor
    residual: Tensor  # The larger of the two; 4 if there is none.
    growth: Tensor  # ||T^N||^(1 / N), which tends to the spectral radius.
    squarings: Tensor
    products: Tensor


def _transposed(matrices: Tensor) -> Tensor:
    return ops.transpose(matrices, (0, 2, 1))


def _unit(columns: Tensor) -> Tensor:
    return divide(columns, frobenius_norms(columns))


def _orthonormal(columns: Tensor) -> Tensor:
    # Of two dependent columns, the second becomes noise or zero.
    first, second = _unit(columns[..., :1]), _unit(columns[..., 1:])
    for _ in range(2):  # A single pass would leave rounding errors.
        second = second - first * ops.sum(first * second, axis=1, keepdims=True)
    return ops.concatenate([first, _unit(second)], axis=2)


def _advanced(both: Tensor, bases: Tensor) -> Tensor:
    for _ in range(PRODUCTS):
        bases = ops.matmul(both, bases)
    return _orthonormal(bases)


def _better(both: Tensor, bases: Tensor, best: tuple[Tensor, ...]) -> tuple:
    # The better of the given bases and the best so far: residual, bases, planar.
    images = ops.matmul(both, bases)
    small = ops.matmul(_transposed(bases), images)
    lines = frobenius_norms(images[..., :1] - bases[..., :1] * small[:, :1, :1])
    planes = frobenius_norms(images - ops.matmul(bases, small))
    there = ops.sum(bases * bases, axis=1) > 0.5
    nothing = 4.0 * ops.ones_like(lines)
    line = ops.max(ops.where(there[:, :1, None], lines, nothing))
    plane = ops.max(ops.where(there[:, 1:, None], planes, nothing))
    # If both are at rounding level, the plane is safer: if two eigenvalues nearly tie,
    # it contains both eigenvectors, but the line is a mixture of them.
    planar = (plane < line) | (plane <= rounding(both[0]))
    found = (ops.where(planar, plane, line), bases, planar)
    better = found[0] < best[0]
    return tuple(ops.where(better, x, y) for x, y in zip(found, best, strict=True))


def rounding(matrix: Tensor) -> float:
    """Returns the rounding level of sums of n products, relative to the norm."""
    return math.sqrt(matrix.shape[0]) * machine_epsilon(matrix)


def _square(matrix: Tensor, both: Tensor, start: Tensor) -> tuple:
    # Squares until a power reveals a subspace: the best one, growth, squarings.
    most = MOST_SQUARINGS[keras.backend.standardize_dtype(matrix.dtype)]
    # Until then, the powers of a nilpotent matrix may have an invariant plane.
    least = math.ceil(math.log2(matrix.shape[0]))

    def step(
        count: Tensor, power: Tensor, log: Tensor, share: Tensor, *best: Tensor
    ) -> tuple:
        for _ in range(2):
            squared = ops.matmul(power, power)
            norm = frobenius_norm(squared)
            # If the square underflows, its root and growth are kept.
            ends = norm == 0
            share = ops.where(ends, share, 0.5 * share)
            log = ops.where(ends, log, log + share * ops.log(norm))
            power = ops.where(ends, power, divide(squared, norm))
        columns = ops.matmul(ops.stack([power, ops.transpose(power)]), start)
        columns = ops.where(ends | (count < least - 2), 0.0 * columns, columns)
        # Products with `T` itself remove most of the rounding errors of its power.
        bases = _advanced(divide(both, ops.exp(log)), _orthonormal(columns))
        return count + 2, power, log, share, *_better(both, bases, tuple(best))

    one = ops.ones_like(matrix[0, 0])
    none = (4.0 * one, ops.zeros_like(both[..., :2]), one > 2)
    values = ops.while_loop(
        lambda count, *rest: (count < most) & (rest[3] > rounding(matrix)),
        step,
        (ops.zeros((), "int32"), matrix, 0.0 * one, one, *none),
    )
    return values[4:], ops.exp(values[2]), values[0]


def _multiply(both: Tensor, best: tuple[Tensor, ...], growth: Tensor) -> tuple:
    # Subspace iteration with two columns: the best subspace, products.
    scaled = divide(both, growth)

    def step(
        look: Tensor, turns: Tensor, _: Tensor, bases: Tensor, *best: Tensor
    ) -> tuple:
        bases = ops.fori_loop(0, turns, lambda _, x: _advanced(scaled, x), bases)
        found = _better(both, bases, tuple(best))
        gains = (look < IDLE_FROM) | (found[0] < LEAST_GAIN * best[0])
        return look + 1, 2 * turns, gains, bases, *found

    def goes_on(look: Tensor, turns: Tensor, gains: Tensor, *rest: Tensor) -> Tensor:
        return gains & (look < MOST_LOOKS) & (rest[1] > rounding(both[0]))

    start = (ops.zeros((), "int32"), ops.ones((), "int32"), growth == growth)
    _, turns, _, _, *best = ops.while_loop(goes_on, step, (*start, best[1], *best))
    return tuple(best), PRODUCTS * (turns - 1)


def _invert(both: Tensor, best: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    # Inverse iteration with the characteristic polynomial of `T` within the plane.
    def step(_: Tensor, best: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        matrix, (right, left) = both[0], (best[1][0], best[1][1])
        small = ops.matmul(ops.transpose(right), ops.matmul(matrix, right))
        identity = ops.eye(matrix.shape[0], dtype=matrix.dtype)
        trace = small[0, 0] + small[1, 1]
        determinant = small[0, 0] * small[1, 1] - small[0, 1] * small[1, 0]
        factor = matrix - trace * identity
        basis, triangle = ops.qr(ops.matmul(matrix, factor) + determinant * identity)
        # Vanishing pivots become as large as rounding errors.
        least = machine_epsilon(matrix) * frobenius_norm(triangle)
        pivots = ops.diagonal(triangle)
        pivots = ops.where(ops.abs(pivots) < least, least - pivots, 0.0 * pivots)
        triangle = triangle + ops.diag(pivots)
        inverse = ops.solve_triangular(triangle, ops.transpose(basis))
        columns = (inverse, right), (ops.transpose(inverse), left)
        bases = _orthonormal(ops.stack([ops.matmul(*pair) for pair in columns]))
        return _better(both, bases, best)

    return ops.fori_loop(0, INVERSE_STEPS, step, best)


def _is_nilpotent(matrix: Tensor) -> Tensor:
    # By the pattern of nonzero entries alone: all paths from unit to unit end.
    paths = ops.cast(matrix != 0, matrix.dtype)
    for _ in range(math.ceil(math.log2(matrix.shape[0]))):
        paths = ops.cast(ops.matmul(paths, paths) > 0, matrix.dtype)
    return ops.logical_not(ops.any(paths > 0))


@compiled
def _search(matrix: Tensor, start: Tensor) -> tuple[Tensor, ...]:
    both = ops.stack([matrix, ops.transpose(matrix)])
    best, growth, squarings = _square(matrix, both, start)

    def refined() -> tuple[Tensor, ...]:
        found, products = _multiply(both, best, growth)
        # Too far from a subspace, inverse iteration would lead to any of them.
        near = found[0] <= machine_epsilon(matrix) ** 0.25
        found = ops.cond(near, lambda: _invert(both, found), lambda: found)
        zero = ops.where(_is_nilpotent(matrix), 0.0 * growth, ops.ones_like(growth))
        return found[0], found[1] * zero, found[2], growth * zero, products

    residual, bases, planar, growth, products = ops.cond(
        # Not for NaN.
        (best[0] > rounding(matrix)) & (growth < math.inf),
        refined,
        lambda: (*best, growth, ops.zeros((), "int32")),
    )
    return bases, planar, residual, growth, squarings, products


def dominant_subspace(matrix: Tensor) -> Subspace:
    """Finds the dominant invariant subspaces of a matrix of norm 1, or zero."""
    size = matrix.shape[0]
    if size <= 2:  # The whole space.
        bases = ops.stack([ops.eye(size, 2, dtype=matrix.dtype)] * 2)
        none, zero = 0.0 * frobenius_norm(matrix), ops.zeros((), "int32")
        planar = ops.convert_to_tensor(size == 2)
        return Subspace(bases, planar, none, none, zero, zero)
    # Random columns, in no special position to any subspace. Both sides use the same
    # ones, so that the two subspaces of a symmetric matrix agree.
    start = np.random.default_rng(0).normal(size=(size, 2))
    bases, planar, *rest = _search(matrix, ops.cast(start, matrix.dtype))
    line = ops.convert_to_tensor([1.0, 0.0], dtype=matrix.dtype)
    return Subspace(ops.where(planar, bases, bases * line), planar, *rest)
