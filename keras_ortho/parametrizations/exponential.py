"""The exponential of a skew-symmetric matrix, and its inverse map.

`exp(A) = r(A / 2^s)^(2^s)`, where the diagonal Pade approximant `r = q(-X)^-1 q(X)` of
degree 7 is orthogonal by itself. N. J. Higham, "The scaling and squaring method for the
matrix exponential revisited", SIAM J. Matrix Anal. 26, 2005.
"""

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend import with_gradient
from keras_ortho.backend.precision import wide_tensor
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check
from keras_ortho.extras import require
from keras_ortho.parametrizations.arithmetic import (
    factorized,
    limited,
    nearest_orthogonal,
    random_orthogonal,
)
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.skew import HenaffSkew, num_entries, skew_matrix

# Coefficients of `q`, and the largest norm for which the approximant is exact to
# rounding (Higham, table 2.3; Al-Mohy and Higham, 2009, for float32).
_PADE = (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0)
_LARGEST_NORM = {"float32": 3.9257, "float64": 0.9504}
# More than the norms of `limited` need, in either dtype.
_MAX_SQUARINGS = 64
# Squarings between two Newton-Schulz steps, as each doubles the distance from
# orthogonality, of which a step leaves the square.
_BETWEEN_POLISHES = 8


def _pade(skew: Tensor) -> Tensor:
    identity = ops.eye(skew.shape[0], dtype=skew.dtype)
    second = ops.matmul(skew, skew)
    fourth = ops.matmul(second, second)
    powers = (identity, second, fourth, ops.matmul(fourth, second))
    even, odd = (
        sum(c * power for c, power in zip(_PADE[first::2], powers, strict=True))
        for first in (0, 1)
    )
    odd = ops.matmul(skew, odd)
    # (even - odd)^-1 (even + odd) = I + 2 (even - odd)^-1 odd: small terms stay small.
    # The gradient of an inverse takes only products, that of a solve another solve.
    return identity + 2.0 * ops.matmul(factorized(ops.inv, even - odd), odd)


def _polished(matrix: Tensor) -> Tensor:
    """Takes one Newton-Schulz step towards the nearest orthogonal matrix."""
    gram = ops.matmul(ops.transpose(matrix), matrix)
    return 1.5 * matrix - 0.5 * ops.matmul(matrix, gram)


def _next_power(remaining: Tensor, power: Tensor) -> Tensor:
    """Squares a matrix, with a Newton-Schulz step if one is due."""
    power = ops.matmul(power, power)
    return ops.cond(
        remaining % _BETWEEN_POLISHES == 0, lambda: _polished(power), lambda: power
    )


def _squared(matrix: Tensor, times: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    _, power = ops.while_loop(
        lambda i, _: i > 0,
        lambda i, power: (i - 1, _next_power(i - 1, power)),
        (ops.cast(times, "int32"), matrix),
    )
    return power, (matrix, times)


def _squared_gradient(
    saved: tuple[Tensor, Tensor], upstream: Tensor
) -> tuple[Tensor, Tensor]:
    # A squaring of R maps the upstream gradient G to R^T G + G R^T. All R are powers of
    # one matrix, so these maps commute: they can be applied in the order in which the
    # powers arise, and none has to be stored. For a change along the orthogonal
    # matrices, a Newton-Schulz step is the identity.
    matrix, times = saved

    def step(i: Tensor, power: Tensor, gradient: Tensor) -> tuple[Tensor, ...]:
        turned = ops.transpose(power)
        gradient = ops.matmul(turned, gradient) + ops.matmul(gradient, turned)
        return i - 1, _next_power(i - 1, power), gradient

    _, _, gradient = ops.while_loop(
        lambda i, *_: i > 0, step, (ops.cast(times, "int32"), matrix, upstream)
    )
    return gradient, ops.zeros_like(times)


_square = with_gradient(_squared, _squared_gradient)


def _squarings(skew: Tensor, largest: float) -> Tensor:
    """Returns how often to halve `A`, an integer in the dtype of `A`."""
    # Both norms bound the spectral norm, as singular values of `A` come in pairs.
    norm = ops.minimum(
        ops.max(ops.sum(ops.abs(skew), axis=0)),
        ops.sqrt(ops.sum(skew * skew) / 2.0),
    )
    halvings = ops.log(ops.maximum(norm / largest, 1.0)) / math.log(2.0)
    # The loop must end for a non-finite norm, too. The result is then not finite.
    halvings = ops.where(halvings < _MAX_SQUARINGS, halvings, _MAX_SQUARINGS)
    return ops.cast(ops.ceil(halvings), skew.dtype)


def skew_exponential(entries: Tensor) -> Tensor:
    """Computes `exp(A)` from the strict upper triangle of `A`, in row order."""
    skew = skew_matrix(*limited(wide_tensor("entries", entries)))
    largest = _LARGEST_NORM[keras.backend.standardize_dtype(skew.dtype)]
    squarings = _squarings(ops.stop_gradient(skew), largest)
    # No function computes powers of two exactly on every backend.
    halves = ops.convert_to_tensor(0.5 ** np.arange(_MAX_SQUARINGS + 1), skew.dtype)
    scale = ops.take(halves, ops.cast(squarings, "int32"))
    return _square(_pade(skew * scale), squarings)


def skew_logarithm(matrix: np.ndarray) -> np.ndarray:
    """Finds the smallest skew-symmetric `A` with a given exponential, by SciPy."""
    orthogonal = nearest_orthogonal(matrix)
    schur = require("scipy.linalg", extra="linalg").schur
    # For an orthogonal matrix, the Schur form is diagonal except for 2 x 2 rotations.
    blocks, basis = schur(orthogonal, output="real")
    skew = np.zeros_like(blocks)
    pairs = np.flatnonzero(np.diagonal(blocks, -1))
    skew[pairs, pairs + 1] = np.arctan2(blocks[pairs, pairs + 1], blocks[pairs, pairs])
    alone = np.setdiff1d(np.arange(len(blocks)), np.concatenate([pairs, pairs + 1]))
    turned = alone[blocks[alone, alone] < 0]
    wanted = "have the determinant 1, as every exponential of a skew-symmetric matrix"
    check(len(turned) % 2 == 0, "matrix", wanted, "a determinant of -1")
    skew[turned[::2], turned[1::2]] = math.pi
    skew = basis @ (skew - skew.T) @ basis.T
    return skew[np.triu_indices(len(skew), 1)]


@keras.saving.register_keras_serializable(package="keras_ortho")
class SkewExponential(Parametrization):
    """All rotations, `W = exp(A)` with a skew-symmetric `A`, as in expRNN.

    The variable is the strict upper triangle of `A` in row order. `W` is orthogonal up
    to rounding for any norm of `A`, and has an error of about `eps ||A||_2`. If
    `||A||_F` exceeds `1 / (8 eps)`, `A` is scaled to that norm. There are gradients of
    first order in reverse mode. The inverse finds the `A` with eigenvalues of at most
    pi in modulus; it requires SciPy, which the extra `linalg` installs.

    Example:
    >>> layer = OrthoRNN(8, SkewExponential())

    Reference:
    [Lezcano-Casado and Martinez-Rubio, 2019](https://arxiv.org/abs/1901.08428)
    """

    takes = "skew entries"
    full_at_zero = True
    matrix = staticmethod(skew_exponential)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Returns one variable, the free entries of `A`."""
        initializer = initializer or HenaffSkew()
        return [FreeVariable("recurrent_skew", (num_entries(size),), initializer)]

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds the smallest `A`."""
        return (skew_logarithm(matrix),)

    def sample(self, size: int, seed: int | None = None) -> np.ndarray:
        """Draws a rotation uniformly (Haar measure)."""
        matrix = random_orthogonal(size, seed)
        matrix[0] *= np.linalg.slogdet(matrix)[0]
        return matrix
