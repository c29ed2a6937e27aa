"""The exponential of a skew-symmetric matrix, and the real Schur form of any matrix.

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
from keras_ortho.backend.elementary import cos, sin
from keras_ortho.backend.precision import wide_tensor
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_choice, check_real_square
from keras_ortho.extras import require
from keras_ortho.parametrizations.arithmetic import (
    factorized,
    limited,
    nearest_orthogonal,
    placed,
    positions,
    random_orthogonal,
)
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.cayley import scaled_cayley, scaled_cayley_inverse
from keras_ortho.parametrizations.free_initializers import (
    UniformPhases,
    check_array,
    get,
)
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
    """Computes the exponential of a skew-symmetric matrix `A`, an orthogonal matrix.

    The result is orthogonal up to rounding for any norm of `A`, and has an error of
    about `eps ||A||_2`. An `A` with `||A||_F > 1 / (8 eps)` is scaled to that norm.
    Only first-order gradients in reverse mode are supported.

    Args:
        entries: Tensor of shape `(n (n - 1) / 2,)`, float32 or float64: the strict
            upper triangle of `A` in row order.

    Returns:
        Tensor of shape `(n, n)` and the dtype of `entries`, with determinant 1.

    Raises:
        ValueError: If the number or the dtype of the entries is another.

    Example:
    >>> skew_exponential(np.array([np.pi / 2]))
    [[0, 1], [-1, 0]]

    Reference:
    - [Lezcano-Casado and Martinez-Rubio, 2019](https://arxiv.org/abs/1901.08428)
    """
    skew = skew_matrix(*limited(wide_tensor("entries", entries)))
    largest = _LARGEST_NORM[keras.backend.standardize_dtype(skew.dtype)]
    squarings = _squarings(ops.stop_gradient(skew), largest)
    # No function computes powers of two exactly on every backend.
    halves = ops.convert_to_tensor(0.5 ** np.arange(_MAX_SQUARINGS + 1), skew.dtype)
    scale = ops.take(halves, ops.cast(squarings, "int32"))
    return _square(_pade(skew * scale), squarings)


def skew_logarithm(matrix: np.ndarray) -> np.ndarray:
    """Computes the smallest skew-symmetric matrix `A` with a given exponential.

    Requires SciPy, which the extra `linalg` installs.

    Args:
        matrix: Orthogonal array of shape `(n, n)` and determinant 1.

    Returns:
        Float64 array of shape `(n (n - 1) / 2,)`: the strict upper triangle of `A` in
        row order. The eigenvalues of `A` are at most pi in modulus.

    Raises:
        ValueError: If the matrix is not a rotation up to rounding.

    Example:
    >>> skew_logarithm(np.array([[0.0, 1.0], [-1.0, 0.0]]))
    array([1.57079633])
    """
    orthogonal = nearest_orthogonal(matrix)
    schur = require("scipy.linalg", extra="linalg").schur
    # For an orthogonal matrix, the Schur form is diagonal except for 2 x 2 rotations.
    blocks, basis = schur(orthogonal, output="real")
    skew = np.zeros_like(blocks)
    pairs = np.flatnonzero(np.diagonal(blocks, -1))
    skew[pairs, pairs + 1] = np.arctan2(blocks[pairs, pairs + 1], blocks[pairs, pairs])
    alone = np.setdiff1d(np.arange(len(blocks)), np.concatenate([pairs, pairs + 1]))
    turned = alone[blocks[alone, alone] < 0]
    if len(turned) % 2:
        raise ValueError(
            "The determinant of `matrix` must be 1, as for every exponential of a "
            "skew-symmetric matrix. Received: a determinant of -1"
        )
    skew[turned[::2], turned[1::2]] = math.pi
    skew = basis @ (skew - skew.T) @ basis.T
    return skew[np.triu_indices(len(skew), 1)]


@keras.saving.register_keras_serializable(package="keras_ortho")
class SkewExponential(Parametrization):
    """All rotations, `W = exp(A)` with a skew-symmetric `A`, as in expRNN.

    Example:
    >>> layer = OrthoRNN(8, SkewExponential())
    """

    takes = "skew entries"
    full_at_zero = True
    matrix = staticmethod(skew_exponential)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Returns one variable, the free entries of `A`."""
        initializer = initializer or HenaffSkew()
        return [FreeVariable("recurrent_skew", (num_entries(size),), initializer)]

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds the smallest `A`, see `skew_logarithm`."""
        return (skew_logarithm(matrix),)

    def sample(self, size: int, seed: int | None = None) -> np.ndarray:
        """Draws a rotation uniformly (Haar measure)."""
        matrix = random_orthogonal(size, seed)
        matrix[0] *= np.linalg.slogdet(matrix)[0]
        return matrix


MAPS = ("exponential", "cayley")


def rotation_blocks(radii: Tensor, angles: Tensor) -> Tensor:
    """Builds the block-diagonal `Theta`."""
    size = radii.shape[0] + angles.shape[0]
    angles = ops.pad(angles, ((0, size % 2),))
    cosines = ops.repeat(radii * cos(angles), 2)[:size]
    sines = ops.repeat(radii * sin(angles), 2)[:size, None]
    in_block = np.eye(size, k=1, dtype=bool) & (np.arange(size) % 2 == 0)[:, None]
    above = ops.where(in_block, sines, ops.zeros_like(sines))
    return ops.diag(cosines) + ops.transpose(above) - above


def schur_matrix(
    entries: Tensor,
    upper: Tensor,
    radii: Tensor,
    angles: Tensor,
    map: str = "exponential",
) -> Tensor:
    """Computes the general matrix `W = P (Theta + T) P^T`, a form of every real matrix.

    `P` is a rotation. `Theta` is block-diagonal, with 2 x 2 blocks
    `gamma_j [[cos t_j, -sin t_j], [sin t_j, cos t_j]]` and, for an odd order, a last
    entry `gamma`. `T` is strictly upper triangular.

    Args:
        entries: Tensor of shape `(n (n - 1) / 2,)`: the strict upper triangle, in row
            order, of the skew-symmetric matrix from which `P` is computed.
        upper: Tensor of shape `(n (n - 1) / 2,)`: `T` in row order.
        radii: Tensor of shape `(ceil(n / 2),)`: the `gamma_j`.
        angles: Tensor of shape `(floor(n / 2),)`: the `t_j`, in radians.
        map: How `P` is computed, `"exponential"` or `"cayley"`. Default:
            `"exponential"`.

    Returns:
        Tensor of shape `(n, n)` and the dtype of the arguments.

    Raises:
        ValueError: If the shapes do not agree, or the map is unknown.

    Example:
    >>> schur_matrix(np.zeros(1), np.ones(1), np.ones(1), np.zeros(1))
    [[1, 1], [0, 1]]

    Reference:
    - [Kerg et al., 2019](https://arxiv.org/abs/1905.12080), equations 4 and 5
    """
    size = radii.shape[0] + angles.shape[0]
    found = [tuple(x.shape) for x in (entries, upper, radii, angles)]
    count = num_entries(size)
    if found != [(count,), (count,), ((size + 1) // 2,), (size // 2,)]:
        raise ValueError(
            "`entries` and `upper` must have n (n - 1) / 2 entries, `radii` ceil(n / "
            f"2) and `angles` floor(n / 2). Received: shapes {found}"
        )
    check_choice("map", map, MAPS)
    if map == "exponential":
        basis = skew_exponential(entries)
    else:
        basis = scaled_cayley(entries, ops.ones((size,), dtype=entries.dtype))
    inner = rotation_blocks(radii, angles) + placed(upper, positions(size, size, 1))
    return ops.matmul(ops.matmul(basis, inner), ops.transpose(basis))


def schur_inverse(
    matrix: np.ndarray, map: str = "exponential"
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Finds variables for which `P (Theta + T) P^T` equals a given matrix.

    This requires SciPy, which the extra `linalg` installs.

    Args:
        matrix: Any finite real array of shape `(n, n)`.
        map: How `P` is computed, `"exponential"` or `"cayley"`. Default:
            `"exponential"`.

    Returns:
        Float64 arrays `(entries, upper, radii, angles)`, as `schur_matrix` takes them.
        The radii are nonnegative, except for the last one of an odd order.

    Raises:
        ValueError: If the matrix is not square, real and finite, or the map is unknown.

    Example:
    >>> entries, upper, radii, angles = schur_inverse(np.diag([1.0, 2.0]))
    >>> radii * np.cos(angles)
    array([1.5])
    """
    check_choice("map", map, MAPS)
    triangle, basis = _aligned_schur(check_real_square("matrix", matrix))
    size = len(triangle)
    cayley, signs = scaled_cayley_inverse(basis)
    # The basis is (I + A)^-1 (I - A) D. Multiplying its columns by the signs D makes it
    # a rotation, and preserves the form of the triangle.
    triangle = signs[:, None] * triangle * signs
    entries = cayley if map == "cayley" else skew_logarithm(basis * signs)
    first = 2 * np.arange(size // 2)
    cosines, sines = triangle[first, first], triangle[first + 1, first]
    radii = np.hypot(cosines, sines)
    triangle[first, first + 1] += sines  # `Theta` has `-sines` there.
    if size % 2:
        radii = np.append(radii, triangle[-1, -1])
    upper = triangle[np.triu_indices(size, 1)]
    return entries, upper, radii, np.arctan2(sines, cosines)


def _aligned_schur(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Computes the Schur form with blocks at even rows and equal diagonal entries."""
    triangle, basis, _ = require("scipy.linalg", extra="linalg").schur(
        matrix, output="real", sort=lambda real, imaginary: imaginary != 0
    )
    # With the complex eigenvalues first, all of their blocks begin at even rows.
    for i in range(0, len(triangle) - 1, 2):
        pair = slice(i, i + 2)
        rotation = _equalizer(triangle[pair, pair])
        triangle[pair] = rotation.T @ triangle[pair]
        triangle[:, pair] = triangle[:, pair] @ rotation
        basis[:, pair] = basis[:, pair] @ rotation
        difference = (triangle[i, i] - triangle[i + 1, i + 1]) / 2
        triangle[i, i] -= difference
        triangle[i + 1, i + 1] += difference
    return triangle, basis


def _equalizer(block: np.ndarray) -> np.ndarray:
    """Returns the rotation that makes the diagonal entries of a 2 x 2 matrix equal."""
    difference = block[0, 0] - block[1, 1]
    angle = np.arctan2(difference, block[0, 1] + block[1, 0]) / 2
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.array([[cosine, sine], [-sine, cosine]])


@keras.saving.register_keras_serializable(package="keras_ortho")
class RealSchur(Parametrization):
    """All real matrices in their real Schur form `W = P (Theta + T) P^T`, as in nnRNN.

    Args:
        map: How the rotation `P` is computed, `"exponential"` or `"cayley"`. Default:
            `"exponential"`.
        angles_initializer: Initializer for the angles. Default: `None`, uniform on
            `(-pi, pi)`.
        radii_initializer: Initializer for the radii. Default: `None`, ones.
        upper_initializer: Initializer for `T`, in row order. Default: `None`, zeros.

    Raises:
        ValueError: If the map is unknown.

    Example:
    >>> [variable.name for variable in RealSchur().variables(4)]
    ['recurrent_skew', 'schur_upper', 'schur_radii', 'schur_angles']
    """

    takes = "skew entries"

    def __init__(
        self,
        map: str = "exponential",
        angles_initializer: Any = None,
        radii_initializer: Any = None,
        upper_initializer: Any = None,
    ) -> None:
        check_choice("map", map, MAPS)
        self.map = map
        self.angles_initializer = get(angles_initializer)
        self.radii_initializer = get(radii_initializer)
        self.upper_initializer = get(upper_initializer)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the free entries of `A` and of `T`, the radii and the angles."""
        triangle, blocks = (num_entries(size),), size // 2
        zeros, ones = keras.initializers.Zeros(), keras.initializers.Ones()
        rows = (
            ("schur_upper", triangle, self.upper_initializer or zeros),
            ("schur_radii", (size - blocks,), self.radii_initializer or ones),
            ("schur_angles", (blocks,), self.angles_initializer or UniformPhases()),
        )
        for name, shape, start in rows:
            argument = f"{name.removeprefix('schur_')}_initializer"
            check_array(argument, start, shape)
        return [
            FreeVariable("recurrent_skew", triangle, initializer or HenaffSkew()),
            *(FreeVariable(*row, group="others") for row in rows),
        ]

    def matrix(self, *values: Tensor) -> Tensor:
        """Computes `W = P (Theta + T) P^T`."""
        entries, upper, radii, angles = values
        return schur_matrix(entries, upper, radii, angles, self.map)

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds the variables of any real matrix. This requires SciPy."""
        return schur_inverse(matrix, self.map)

    def distance(self, matrix: np.ndarray) -> float:
        """Returns 0, because the map reaches every real matrix."""
        check_real_square("matrix", matrix)
        return 0.0
