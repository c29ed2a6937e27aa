"""The real Schur form `W = P (Theta + T) P^T` of any real matrix, as in nnRNN."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend.elementary import cos, sin
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_choice, check_real_square
from keras_ortho.extras import require
from keras_ortho.parametrizations.arithmetic import placed, positions
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.cayley import scaled_cayley, scaled_cayley_inverse
from keras_ortho.parametrizations.exponential import skew_exponential, skew_logarithm
from keras_ortho.parametrizations.free_initializers import (
    UniformPhases,
    check_array,
    get,
)
from keras_ortho.parametrizations.skew import HenaffSkew, num_entries

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

    `P` is a rotation. `Theta` is block-diagonal, with 2 x 2 blocks
    `gamma_j [[cos t_j, -sin t_j], [sin t_j, cos t_j]]` and, for an odd order, a last
    entry `gamma`. `T` is strictly upper triangular. The variables are the entries from
    which `P` is made, those of `T` in row order, the `gamma_j` and the `t_j`. The
    inverse requires SciPy, which the extra `linalg` installs.

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

    Reference:
    [Kerg et al., 2019](https://arxiv.org/abs/1905.12080), equations 4 and 5
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
        size = radii.shape[0] + angles.shape[0]
        if self.map == "exponential":
            basis = skew_exponential(entries)
        else:
            basis = scaled_cayley(entries, ops.ones((size,), dtype=entries.dtype))
        inner = rotation_blocks(radii, angles) + placed(upper, positions(size, size, 1))
        return ops.matmul(ops.matmul(basis, inner), ops.transpose(basis))

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds the variables of any real matrix; only the last radius may be negative.

        This requires SciPy.
        """
        triangle, basis = _aligned_schur(check_real_square("matrix", matrix))
        size = len(triangle)
        cayley, signs = scaled_cayley_inverse(basis)
        # The basis is (I + A)^-1 (I - A) D. Multiplying its columns by the signs D
        # makes it a rotation, and preserves the form of the triangle.
        triangle = signs[:, None] * triangle * signs
        entries = cayley if self.map == "cayley" else skew_logarithm(basis * signs)
        first = 2 * np.arange(size // 2)
        cosines, sines = triangle[first, first], triangle[first + 1, first]
        radii = np.hypot(cosines, sines)
        triangle[first, first + 1] += sines  # `Theta` has `-sines` there.
        if size % 2:
            radii = np.append(radii, triangle[-1, -1])
        upper = triangle[np.triu_indices(size, 1)]
        return entries, upper, radii, np.arctan2(sines, cosines)

    def distance(self, matrix: np.ndarray) -> float:
        """Returns 0, because the map reaches every real matrix."""
        check_real_square("matrix", matrix)
        return 0.0
