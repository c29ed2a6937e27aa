"""Eigenvalues of real 2 x 2 matrices, in closed form and in real arithmetic."""

from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.arithmetic import (
    divide,
    frobenius_norm,
    machine_epsilon,
)


def order_two(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    """Builds the matrix `[[a, b], [c, d]]`."""
    return ops.stack([ops.stack([a, b]), ops.stack([c, d])])


def determinant(small: Tensor) -> Tensor:
    """Computes the determinant of a matrix."""
    return small[0, 0] * small[1, 1] - small[0, 1] * small[1, 0]


def inverse(small: Tensor) -> Tensor:
    """Computes the inverse of a matrix, or its adjugate if it is singular."""
    a, b, c, d = small[0, 0], small[0, 1], small[1, 0], small[1, 1]
    return divide(order_two(d, -b, -c, a), determinant(small))


def mean_and_discriminant(small: Tensor) -> tuple[Tensor, Tensor]:
    """Computes the mean of the eigenvalues and their discriminant."""
    mean = 0.5 * (small[0, 0] + small[1, 1])
    half = 0.5 * (small[0, 0] - small[1, 1])
    return mean, half * half + small[0, 1] * small[1, 0]


def larger(mean: Tensor, discriminant: Tensor) -> tuple[Tensor, Tensor]:
    """Finds the real eigenvalue with the larger modulus, in a tie the positive one."""
    root = ops.sqrt(ops.maximum(discriminant, ops.zeros_like(discriminant)))
    root = ops.where(mean < 0, -root, root)
    return mean + root, 2.0 * root


def radius_and_slope(small: Tensor) -> tuple[Tensor, Tensor]:
    """Computes the spectral radius of a matrix `H` and its logarithmic derivative.

    A complex pair has the modulus `sqrt(det H)`, whose logarithm has the derivative
    `H^-1 / 2`. A real eigenvalue `a` beside another one `b` has the spectral projector
    `(H - b I) / (a - b)`. Two real eigenvalues that differ only by rounding are treated
    as a pair.
    """
    mean, discriminant = mean_and_discriminant(small)
    value, gap = larger(mean, discriminant)
    identity = ops.eye(2, dtype=small.dtype)
    of_one = divide(divide(small - (value - gap) * identity, gap), value)
    # The right-hand side bounds the change of the discriminant by rounding in H. The
    # discriminant is the square of half the gap: rounding hides a relative gap of some
    # eps in a symmetric matrix, and one of about sqrt(eps) in a nearly defective one.
    error = 4.0 * machine_epsilon(small) * frobenius_norm(small)
    is_pair = discriminant <= error * (error + frobenius_norm(small - mean * identity))
    modulus = ops.sqrt(ops.abs(mean * mean - discriminant))
    radius = ops.where(is_pair, modulus, ops.abs(value))
    return radius, ops.where(is_pair, 0.5 * inverse(small), of_one)


def eigenvector(small: Tensor, other: tuple[Tensor, Tensor]) -> Tensor:
    """Finds an eigenvector of a matrix `H`."""
    # The columns of H - b I are eigenvectors, or zero; both are if H = b I.
    identity = ops.eye(2, dtype=small.dtype)
    columns = ops.stack([small - other[0] * identity, -other[1] * identity])
    norms = ops.sum(columns * columns, axis=(0, 1))
    column = ops.where(norms[0] >= norms[1], columns[:, :, 0], columns[:, :, 1])
    any_one = ops.stack([identity[0], ops.zeros_like(identity[0])])
    column = ops.where(ops.max(norms) == 0, any_one, column)
    return divide(column, frobenius_norm(column))
