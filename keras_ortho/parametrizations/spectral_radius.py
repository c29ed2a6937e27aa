"""The spectral radius of a real matrix, its gradient, and normalization by it.

Repeated squaring gives a multiple of `T^N`, `N = 2^k`, in which only the eigenvalues of
largest modulus survive. `T^N V` and `(T^N)^T V` with two columns `V` then contain the
dominant right and left invariant subspaces: lines if the dominant eigenvalue is real,
planes if it belongs to a complex pair, as `||T Q - Q (Q^T T Q)||` shows. The rest
follows in closed form from `H = Q^T T Q`, of order at most two. Golub and Van Loan,
"Matrix Computations", section 7.3.
"""

import math
from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend import compiled, with_gradient
from keras_ortho.backend.precision import wide_tensor
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_number, check_square
from keras_ortho.parametrizations.arithmetic import (
    divide,
    frobenius_norm,
    machine_epsilon,
)

# Squarings before the first look for a subspace; there is one after every two more.
FIRST_SQUARINGS = 6
# The last factors of a power, which suffer least from rounding: sixteen times `T^8`.
LOW_SQUARINGS, LOW_FACTORS = 3, 16
# Enough to amplify a gap of a few eps between moduli to order one.
MOST_SQUARINGS = {"float32": 24, "float64": 48}


def _rounding(matrix: Tensor) -> float:
    # Rounding level of sums of n products, relative to ||T||_F.
    return math.sqrt(matrix.shape[0]) * machine_epsilon(matrix)


def _normalize(tensor: Tensor) -> Tensor:
    return divide(tensor, frobenius_norm(tensor))


def _better(is_better: Tensor, new: Iterable, old: Iterable) -> tuple[Tensor, ...]:
    return tuple(ops.where(is_better, x, y) for x, y in zip(new, old, strict=True))


def _orthonormal(columns: Tensor) -> Tensor:
    # If the two columns are dependent, the second becomes zero.
    first = _normalize(columns[:, 0])
    second = columns[:, 1]
    for _ in range(2):  # A single pass would leave rounding errors.
        second = second - first * ops.sum(first * second)
    return ops.stack([first, _normalize(second)], axis=1)


def _residuals(matrix: Tensor, basis: Tensor) -> Tensor:
    # That of the first column, and that of both.
    image = ops.matmul(matrix, basis)
    small = ops.matmul(ops.transpose(basis), image)
    line = frobenius_norm(image[:, 0] - basis[:, 0] * small[0, 0])
    plane = frobenius_norm(image - ops.matmul(basis, small))
    return ops.stack([line, ops.where(_is_line(basis), math.inf, plane)])


def _is_line(basis: Tensor) -> Tensor:
    return ops.all(basis[:, 1] == 0)


def _subspaces(matrix: Tensor, right: Tensor, left: Tensor) -> tuple[Tensor, ...]:
    # The larger residual, and the two bases. The second column of a line is zero.
    right, left = _orthonormal(right), _orthonormal(left)
    line, plane = ops.unstack(
        ops.maximum(_residuals(matrix, right), _residuals(ops.transpose(matrix), left)),
        2,
    )
    # If both residuals are at rounding level, the plane is safer: if two eigenvalues
    # nearly tie, it contains both eigenvectors, but the line is a mixture of them.
    planar = (plane < line) | (plane <= _rounding(matrix))
    residual = ops.where(planar, plane, line)
    columns = ops.stack([ops.ones_like(residual), ops.cast(planar, residual.dtype)])
    # A power that vanishes reveals no subspace.
    vanishes = (frobenius_norm(right) == 0) | (frobenius_norm(left) == 0)
    residual = ops.where(vanishes, math.inf, residual)
    return residual, right * columns, left * columns


@compiled
def _dominant(matrix: Tensor) -> tuple[Tensor, ...]:
    """Searches the powers of a matrix for its dominant subspaces.

    Returns the residual, relative to `||T||_F`, the two bases, the growth
    `||T^N||_F^(1 / N)`, and the number of squarings.
    """
    dtype = keras.backend.standardize_dtype(matrix.dtype)
    norm = frobenius_norm(matrix)
    matrix = divide(matrix, norm)
    # Random columns, in no special position to any subspace. Both sides use the same
    # ones, so that the two subspaces of a symmetric matrix agree.
    drawn = np.random.default_rng(0).normal(size=(2, matrix.shape[0]))
    start = ops.convert_to_tensor(drawn.T, dtype=dtype)

    def square(power: Tensor, growth: Tensor, share: Tensor) -> tuple[Tensor, ...]:
        squared = ops.matmul(power, power)
        norm, share = frobenius_norm(squared), 0.5 * share
        # If the square vanishes, the growth so far is kept, as an upper bound.
        found = (divide(squared, norm), growth + share * ops.log(norm))
        return *_better(norm == 0, (power, growth), found), share

    def columns(power: Tensor, low: Tensor) -> Tensor:
        return ops.fori_loop(
            0,
            LOW_FACTORS,
            lambda _, found: ops.matmul(low, _orthonormal(found)),
            ops.matmul(power, start),
        )

    def look(power: Tensor) -> tuple[Tensor, ...]:
        left = columns(ops.transpose(power), ops.transpose(low))
        return _subspaces(matrix, columns(power, low), left)

    def step(count: Tensor, *values: Tensor) -> tuple[Tensor, ...]:
        powers, best = square(*square(*values[:3])), values[3:]
        found = look(powers[0])
        return count + 2, *powers, *_better(found[0] < best[0], found, best)

    def goes_on(count: Tensor, *values: Tensor) -> Tensor:
        # With NaN, the loop runs to its end.
        converged = values[3] <= _rounding(matrix)
        return (count < MOST_SQUARINGS[dtype]) & ops.logical_not(converged)

    # The power, the log of the growth, and 1 / N, the weight of the last log norm.
    powers = (matrix, ops.log(norm), ops.ones_like(norm))
    for _ in range(LOW_SQUARINGS):
        powers = square(*powers)
    low = powers[0]
    for _ in range(LOW_SQUARINGS, FIRST_SQUARINGS):
        powers = square(*powers)
    count = ops.convert_to_tensor(FIRST_SQUARINGS, dtype="int32")
    count, _, growth, _, *best = ops.while_loop(
        goes_on, step, (count, *powers, *look(powers[0]))
    )
    return *best, ops.exp(growth), count


def _determinant(small: Tensor) -> Tensor:
    return small[0, 0] * small[1, 1] - small[0, 1] * small[1, 0]


def _inverse(small: Tensor) -> Tensor:
    # The adjugate, if the matrix is singular.
    a, b, c, d = small[0, 0], small[0, 1], small[1, 0], small[1, 1]
    adjugate = ops.stack([ops.stack([d, -b]), ops.stack([-c, a])])
    return divide(adjugate, _determinant(small))


def _projected(matrix: Tensor, basis: Tensor) -> Tensor:
    return ops.matmul(ops.transpose(basis), ops.matmul(matrix, basis))


def _eigenvalues(small: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Finds `m`, `r` and `i` so that the eigenvalues are `m +- r` or `m +- i`.

    `m + r` has the larger modulus, and in a tie is the positive one.
    """
    mean = 0.5 * (small[0, 0] + small[1, 1])
    half = 0.5 * (small[0, 0] - small[1, 1])
    discriminant = half * half + small[0, 1] * small[1, 0]
    root = ops.sqrt(ops.maximum(discriminant, 0.0))
    imaginary = ops.sqrt(ops.maximum(-discriminant, 0.0))
    return mean, ops.where(mean < 0, -root, root), imaginary


def _radius_and_slope(small: Tensor) -> tuple[Tensor, Tensor]:
    """Computes the spectral radius of a matrix `H` and its logarithmic derivative.

    A complex pair, or two real eigenvalues that differ only by rounding, has the
    modulus `sqrt(det H)`, whose logarithm has the derivative `H^-1 / 2`. A real
    eigenvalue `a` beside another one `b` has the projector `(H - b I) / (a - b)`.
    """
    mean, root, imaginary = _eigenvalues(small)
    identity = ops.eye(2, dtype=small.dtype)
    value = mean + root
    of_one = divide(divide(small - (mean - root) * identity, 2.0 * root), value)
    # Rounding in H changes the discriminant by at most as much as is on the right: it
    # hides a gap of some eps, and one of about sqrt(eps) in a nearly defective matrix.
    error = 4.0 * machine_epsilon(small) * frobenius_norm(small)
    discriminant = root * root - imaginary * imaginary
    is_pair = discriminant <= error * (error + frobenius_norm(small - mean * identity))
    modulus = ops.sqrt(ops.abs(mean * mean - discriminant))
    radius = ops.where(is_pair, modulus, ops.abs(value))
    return radius, ops.where(is_pair, 0.5 * _inverse(small), of_one)


def _radius(scaled: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, dict[str, Tensor]]:
    # The radius; whether it has the gradient `sensitivity Q^T`; the sensitivity; Q.
    eps = machine_epsilon(scaled)
    residual, right, left, growth, squarings = _dominant(scaled)
    # Z^T Q. If the subspace is a line, diag(z^T q, 1).
    overlap = ops.matmul(ops.transpose(left), right)
    is_line = ops.cast(_is_line(right), scaled.dtype)
    overlap = overlap + ops.diag(ops.stack([0.0 * is_line, is_line]))
    # (Z^T Q)^-1 Z^T T Q has the product of the errors of Q and Z as its error, beside
    # eps / |Z^T Q| of rounding. If the subspaces are nearly orthogonal, as for a
    # defective eigenvalue, Q^T T Q is exact for a T changed by the residual.
    small = ops.matmul(ops.transpose(left), ops.matmul(scaled, right))
    small = ops.where(
        ops.abs(_determinant(overlap)) > eps**0.5,
        ops.matmul(_inverse(overlap), small),
        _projected(scaled, right),
    )
    radius, slope = _radius_and_slope(small)
    # If more than two eigenvalues tie, there is no subspace to find.
    found = residual <= eps**0.5
    radius = ops.where(found, radius, growth)
    factor = ops.transpose(ops.matmul(slope, _inverse(overlap)))
    sensitivity = radius * ops.matmul(left, factor)
    # The norm of the gradient is the condition number of the eigenvalue.
    condition = frobenius_norm(sensitivity)
    found = found & (condition <= 1.0 / (scaled.shape[0] * eps))
    report = {
        "radius": radius,
        "gradient_found": found,
        "residual": residual,
        "condition": condition,
        "planar": ops.logical_not(_is_line(right)),
        "squarings": squarings,
    }
    return radius, found, sensitivity, right, report


def _forward(matrix: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    largest = ops.max(ops.abs(matrix))
    scaled = divide(matrix, largest)
    radius, found, sensitivity, right, _ = _radius(scaled)
    sensitivity = ops.where(found, sensitivity, ops.zeros_like(sensitivity))
    radial = divide(radius, ops.sum(scaled * scaled))
    radial = ops.where(found, ops.zeros_like(radial), radial)
    return radius * largest, (scaled, radial, sensitivity, right)


def _backward(saved: tuple[Tensor, ...], upstream: Tensor) -> tuple[Tensor]:
    scaled, radial, sensitivity, right = saved
    gradient = ops.matmul(sensitivity, ops.transpose(right)) + radial * scaled
    return (upstream * gradient,)


_spectral_radius = with_gradient(_forward, _backward, once=True)


def _check_square(matrix: Tensor) -> Tensor:
    matrix = wide_tensor("matrix", matrix)
    check_square("matrix", matrix)
    return matrix


def spectral_radius(matrix: Tensor) -> Tensor:
    """Computes the spectral radius, the largest modulus of the eigenvalues.

    The gradient is `(alpha Re S + beta Im S) / rho`, with the dominant eigenvalue
    `lambda = alpha + i beta`, its eigenvectors `T u = lambda u`, `v* T = lambda v*`,
    and `S = conj(v) u^T / (v* u)`. It exists once, in reverse mode. Otherwise:

    - Of two real eigenvalues with opposite signs, the positive one is used.
    - Two real eigenvalues that are equal up to rounding are treated as a pair, with the
      geometric mean of their moduli.
    - If no subspace is found, as more eigenvalues tie, for instance in an orthogonal
      matrix, or rounding spoils the powers of a matrix that is far from normal, the
      value is `||T^N||_F^(1 / N)`, which is at least the radius, and the gradient is
      `rho T / ||T||_F^2`; `ENRNNCell.eigenpair_report` tells. This is also the gradient
      if the condition number of the eigenvalue exceeds `1 / (n eps)`.
    - A zero matrix has radius 0 and gradient 0.

    Args:
        matrix: `T`, a tensor of shape `(n, n)`, float32 or float64.

    Returns:
        A scalar of the same dtype.

    Raises:
        ValueError: If the matrix is not square, or its dtype is not float32 or float64.

    Example:
    >>> spectral_radius(np.array([[0.0, -2.0], [2.0, 0.0]]))
    2.0

    Reference:
    [Helfrich and Ye, 2020](https://arxiv.org/abs/1911.07964), proposition 1
    """
    return _spectral_radius(_check_square(matrix))


def normalize_spectral_radius(
    matrix: Tensor, always: Tensor | bool = True, epsilon: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Divides a matrix by `rho + epsilon`, `always` or if `rho` exceeds 1.

    Also tells whether it did. A matrix is not divided by zero.
    """
    matrix = _check_square(matrix)
    epsilon = check_number("epsilon", epsilon)
    radius = _spectral_radius(matrix)
    divides = ops.logical_or(always, radius > 1)
    divisor = radius + epsilon
    divisor = ops.where(divides & (divisor > 0), divisor, ops.ones_like(divisor))
    return matrix / divisor, divides


def eigenpair_report(matrix: Tensor) -> dict[str, Any]:
    """Reports how the dominant eigenpair was found: see `ENRNNCell`."""
    matrix = ops.stop_gradient(_check_square(matrix))
    largest = ops.max(ops.abs(matrix))
    report = _radius(divide(matrix, largest))[-1]
    report["radius"] = report["radius"] * largest
    return {name: ops.convert_to_numpy(each).item() for name, each in report.items()}
