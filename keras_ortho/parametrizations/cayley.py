"""The scaled Cayley transform, `W = (I + A)^-1 (I - A) D`.

`A` is skew-symmetric and `D` a diagonal matrix of signs; or `A = S + i Y` is
skew-Hermitian, and `D` has phases. Every orthogonal or unitary matrix has this form,
with an `A` of entries of at most 1 in modulus and a `D` that maximizes
`|det(I + W D*)|`: W. Kahan, "Is there a small skew Cayley transform with zero
diagonal?", Linear Algebra and its Applications 417, 2006.
"""

import math
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend import with_gradient
from keras_ortho.backend.elementary import cos, sin
from keras_ortho.backend.precision import wide_tensor
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_fits, is_integer
from keras_ortho.parametrizations.arithmetic import (
    adjoint,
    block,
    factorized,
    limited,
    nearest_orthogonal,
    nearest_unitary,
    of_left_half,
    product,
    random_orthogonal,
    random_unitary,
    turn,
    upper_entries,
)
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.free_initializers import next_seed
from keras_ortho.parametrizations.skew import (
    HenaffSkew,
    num_entries,
    skew_matrix,
    symmetric_matrix,
)

# Bounds on the entries of a complex `A` on its diagonal and off it. While one is
# exceeded, a step multiplies the determinant, of 1 at the start and 2^n at most, by at
# least sqrt(1 + 1/4) or 25/16 - 1/4; the theorem's bound is reached only in the limit.
_DIAGONAL_BOUND = 0.5
_COMPLEX_BOUND = 1.25


def _polished(
    inverse: Tensor,
    adjoint: Callable[[Tensor], Tensor] = ops.transpose,
    product: Callable[[Tensor, Tensor], Tensor] = ops.matmul,
) -> Tensor:
    """Takes two Newton-Schulz steps that bring `X = (I + A)^-1` nearer to its form.

    If `A` is large, the defect of `X + X* = 2 X* X` is most of the error of the
    inverse. A step `W (3 I - W* W) / 2` squares it; in terms of `X = (I + W) / 2`,
    small terms stay small.
    """
    for _ in range(2):
        transpose = adjoint(inverse)
        defect = inverse + transpose - 2.0 * product(transpose, inverse)
        inverse = inverse + (product(inverse, defect) - 0.5 * defect)
    return inverse


def _to_skew(change: Tensor) -> Tensor:
    """Returns the gradient `G` of a real skew `A` for which `dL = tr(change dA)`."""
    return upper_entries(ops.transpose(change) - change, 1)


def _forward(entries: Tensor) -> tuple[Tensor, Tensor]:
    skew = skew_matrix(entries)
    identity = ops.eye(skew.shape[0], dtype=skew.dtype)
    inverse = _polished(factorized(ops.inv, identity + skew))
    return inverse, inverse


def _backward(inverse: Tensor, upstream: Tensor) -> tuple[Tensor]:
    # dX = -X dA X: no new factorization is needed (theorem 3.2 of Helfrich et al.).
    change = ops.matmul(ops.matmul(inverse, ops.transpose(upstream)), inverse)
    return (_to_skew(-change),)


_shifted_inverse = with_gradient(_forward, _backward)  # X = (I + A)^-1


def scaled_cayley(entries: Tensor, signs: Tensor) -> Tensor:
    """Computes the scaled Cayley transform `W = (I + A)^-1 (I - A) D`.

    For finite entries of any size, `||W^T W - I||_F` is at most about `n eps`. An `A`
    with `||A||_F > 1 / (8 eps)`, 1e6 in float32, is scaled to that norm.

    Args:
        entries: Tensor of shape `(n (n - 1) / 2,)`, float32 or float64: the strict
            upper triangle of `A` in row order.
        signs: Tensor of shape `(n,)`: the diagonal of `D`, 1 and -1, a constant.

    Returns:
        Orthogonal tensor of shape `(n, n)` and the dtype of `entries`.

    Raises:
        ValueError: If an argument does not have such a shape and dtype.

    Example:
    >>> scaled_cayley(np.array([1.0]), np.array([1.0, 1.0]))
    [[0, -1], [1, 0]]

    Reference:
    [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html)
    """
    entries = wide_tensor("entries", entries)
    inverse = _shifted_inverse(*limited(entries))
    # 2 X - I has a smaller rounding error than X (I - A): by ten if A is large.
    identity = ops.eye(inverse.shape[0], dtype=inverse.dtype)
    signs = ops.stop_gradient(ops.cast(signs, inverse.dtype))
    check_fits("signs", signs, inverse.shape[:1], "`entries`")
    return (2.0 * inverse - identity) * signs


def _complex_forward(skew: Tensor, symmetric: Tensor) -> tuple[Tensor, Tensor]:
    # [Re A | Im A], the rows of `A`. The block of `A` is real and skew-symmetric.
    rows = ops.concatenate([skew_matrix(skew), symmetric_matrix(symmetric)], axis=1)
    size = rows.shape[0]
    identity = ops.eye(2 * size, dtype=rows.dtype)
    half = factorized(ops.solve, identity + block(rows), identity[:, :size])
    inverse = _polished(of_left_half(half), adjoint, product)
    return inverse, inverse


def _complex_backward(inverse: Tensor, upstream: Tensor) -> tuple[Tensor, Tensor]:
    # With G = dL/dRe X + i dL/dIm X, a change of A changes L by Re tr(-X G* X dA).
    change = -product(product(inverse, adjoint(upstream)), inverse)
    real, imaginary = ops.split(change, 2, axis=1)
    # An off-diagonal entry appears twice in the matrix.
    places = 1.0 - 0.5 * ops.eye(inverse.shape[0], dtype=inverse.dtype)
    symmetric = -places * (imaginary + ops.transpose(imaginary))
    return _to_skew(real), upper_entries(symmetric)


_complex_shifted_inverse = with_gradient(_complex_forward, _complex_backward)


def scaled_cayley_unitary(skew: Tensor, symmetric: Tensor, phases: Tensor) -> Tensor:
    """Computes the real form of the unitary `W = (I + A)^-1 (I - A) D`."""
    skew = wide_tensor("skew", skew)
    symmetric = wide_tensor("symmetric", symmetric)
    phases = wide_tensor("phases", phases)
    inverse = _complex_shifted_inverse(*limited(skew, symmetric))
    identity = ops.eye(*inverse.shape, dtype=inverse.dtype)
    return block(turn(2.0 * inverse - identity, cos(phases), sin(phases)))


def diagonal_signs(size: int, negative_ones: int | float) -> np.ndarray:
    """Returns the diagonal of `D`: ones, followed by negative ones."""
    count = negative_ones
    if isinstance(negative_ones, float | np.floating) and 0 <= negative_ones <= 1:
        # The decimal fraction is meant: 0.7 of 45 is 31.5, which rounds to 32, but
        # the nearest binary number to 0.7 gives slightly less.
        count = int(np.floor(round(float(negative_ones) * size, 9) + 0.5))
    if not is_integer(count) or not 0 <= count <= size:
        raise ValueError(
            "`negative_ones` must be a count, an int between 0 and the number of "
            f"units, {size}, or a fraction of them, a float between 0 and 1. "
            f"Received: negative_ones={negative_ones!r}"
        )
    return np.concatenate([np.ones(size - int(count)), -np.ones(int(count))])


def scaled_cayley_inverse(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Finds `A`, with entries of at most 1, and `D` for a given orthogonal matrix.

    They exist for every such matrix, and are not unique.
    """
    skew, signs = _small_transform(nearest_orthogonal(matrix), bound=1.0)
    return skew[np.triu_indices(len(skew), 1)], signs


def scaled_cayley_unitary_inverse(
    matrix: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Finds `A`, with entries of at most 1.25 in modulus, and the phases of `D`."""
    skew, diagonal = _small_transform(nearest_unitary(matrix), bound=_COMPLEX_BOUND)
    strict, upper = (np.triu_indices(len(skew), k) for k in (1, 0))
    return skew.real[strict], skew.imag[upper], np.angle(diagonal)


def _small_transform(matrix: np.ndarray, bound: float) -> tuple[np.ndarray, np.ndarray]:
    """Finds an `A` whose entries do not exceed a bound, and `D`, for a given matrix.

    Rotating one phase such that `a_jj = iy` becomes zero multiplies `|det(I + W D*)|`
    by `sqrt(1 + y^2)`. Rotating two phases by pi multiplies it by
    `||a_ij|^2 - y_i y_j|`. The determinant is bounded, so the loop ends.
    """
    size = len(matrix)
    diagonal = _pivoting_phases(matrix)
    # An entry may exceed its bound by rounding alone. No step improves that.
    slack = 100 * size * np.finfo("float64").eps
    while True:
        # (I + W D*)^-1 = (I + A) / 2
        inverse = np.linalg.inv(np.eye(size) + matrix * diagonal.conj())
        skew = 2.0 * inverse - np.eye(size)
        heights = skew.diagonal().imag  # Zero, if the matrix is real.
        sizes = np.abs(np.triu(skew, 1))
        i, j = np.unravel_index(sizes.argmax(), sizes.shape)
        highest = np.abs(heights).argmax()
        if abs(heights[highest]) > _DIAGONAL_BOUND + slack:
            y = heights[highest]
            diagonal[highest] *= (1 - 1j * y) / (1 + 1j * y)
        elif sizes[i, j] > bound + slack:
            diagonal[[i, j]] *= -1
        else:
            return (skew - skew.conj().T) / 2, diagonal


def _pivoting_phases(matrix: np.ndarray) -> np.ndarray:
    """Chooses phases or signs such that `I + W D*` needs no pivoting in elimination.

    The pivot in column j is 1 plus `conj(d_j)` times the entry of `W` after the same
    row operations. If `d_j` has the phase of that entry, it is at least 1.
    """
    reduced = matrix.copy()
    diagonal = np.ones(len(matrix), matrix.dtype)
    for j in range(len(matrix)):
        modulus = abs(reduced[j, j])
        if modulus > 0:
            diagonal[j] = reduced[j, j] / modulus
        factors = diagonal[j].conj() * reduced[j + 1 :, j] / (1.0 + modulus)
        reduced[j + 1 :] -= np.outer(factors, reduced[j])
    return diagonal


@keras.saving.register_keras_serializable(package="keras_ortho")
class ScaledCayley(Parametrization):
    """All orthogonal matrices, by the scaled Cayley transform, as in scoRNN.

    The variables are those of `scaled_cayley`. The inverse finds an `A` whose entries
    are at most 1, up to rounding; it is not unique.

    Args:
        negative_ones: How many entries of `D`, the last ones, are -1: an int is a
            count, a float in `[0, 1]` a fraction. Default: 0.5.

    Example:
    >>> ScaledCayley().distance(np.eye(3))
    0.0

    Reference:
    [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html)
    """

    takes = "skew entries"
    full_at_zero = True
    matrix = staticmethod(scaled_cayley)
    inverse = staticmethod(scaled_cayley_inverse)
    sample = staticmethod(random_orthogonal)

    def __init__(self, negative_ones: int | float = 0.5) -> None:
        self.negative_ones = negative_ones

    def check(self, size: int) -> None:
        """Checks the number of negative ones."""
        diagonal_signs(size, self.negative_ones)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Returns the variables: the free entries of `A` and the signs `D`."""
        initializer = initializer or HenaffSkew()
        signs = keras.initializers.Constant(diagonal_signs(size, self.negative_ones))
        return [
            FreeVariable("recurrent_skew", (num_entries(size),), initializer),
            FreeVariable("recurrent_signs", (size,), signs, trainable=False),
        ]


@keras.saving.register_keras_serializable(package="keras_ortho")
class ScaledCayleyUnitary(Parametrization):
    """All unitary matrices, by the scaled Cayley transform, as in scuRNN.

    The variables are the strict upper triangle of `Re A` in row order, the upper
    triangle of `Im A`, and the angles of the diagonal of `D`.

    Example:
    >>> ScaledCayleyUnitary().distance(1j * np.eye(3))
    0.0

    Reference:
    [Maduranga et al., 2019](https://arxiv.org/abs/1811.04142), theorem 1
    """

    is_complex = True
    takes = "skew entries"
    full_at_zero = True
    matrix = staticmethod(scaled_cayley_unitary)
    inverse = staticmethod(scaled_cayley_unitary_inverse)
    sample = staticmethod(random_unitary)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Returns the variables: the free entries of `A` and the phases of `D`."""
        skew, symmetric = num_entries(size), num_entries(size + 1)
        initializer = initializer or HenaffSkew()
        zeros = keras.initializers.Zeros()
        phases = keras.initializers.RandomUniform(
            0.0, 2 * math.pi, seed=next_seed(initializer)
        )
        return [
            FreeVariable("recurrent_skew_real", (skew,), initializer),
            FreeVariable("recurrent_skew_imag", (symmetric,), zeros),
            FreeVariable("recurrent_phases", (size,), phases),
        ]
