"""Layers of rotations of pairs of units: angles to an orthogonal or unitary matrix.

For row vectors `W = L_1 L_2 ... L_k D`. A layer rotates disjoint pairs `(i, j)`,

    h_i' = cos(t) h_i - exp(i p) sin(t) h_j
    h_j' = sin(t) h_i + exp(i p) cos(t) h_j

with `p = 0` in the real case, and `D` is a diagonal of phases, or of signs. The
pairs are neighbors, `(0, 1), (2, 3) ...` and `(1, 2), (3, 4) ...` by turns
(`"tunable"`, of any even number of layers), or units at the distances `n / 2`,
`n / 4` ... 1 within blocks of twice that (`"fft"`, of `log2(n)` layers). Jing et al.,
"Tunable efficient unitary neural networks (EUNN) and their application to RNNs",
ICML 2017.
"""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend.elementary import cos, sin
from keras_ortho.backend.precision import wide_tensor
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_count
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.complex_rows import block, turn
from keras_ortho.parametrizations.free import independent
from keras_ortho.parametrizations.givens_inverse import (
    givens_orthogonal_inverse,
    givens_unitary_inverse,
)
from keras_ortho.parametrizations.givens_layers import pair_table, rotations
from keras_ortho.parametrizations.phases import UniformPhases

STYLES = ("tunable", "fft")


def angles_shape(units: int, style: str, capacity: int | None) -> tuple[int, int]:
    """The shape of the angles of all layers.

    Args:
        units: Number of units `n`: even for `"tunable"`, a power of two of at least
            2 for `"fft"`.
        style: `"tunable"` or `"fft"`.
        capacity: Number of layers of the tunable style, even and positive. Not
            used by `"fft"`.

    Returns:
        `(capacity / 2, n - 1)`: for every two layers first the pairs that begin
        with an even unit, then those that begin with an odd one. Or
        `(log2(n), n / 2)`, the pairs of a layer in the order of their first unit.

    Raises:
        ValueError: If an argument is out of its range.

    Example:
    >>> angles_shape(512, "tunable", 2), angles_shape(512, "fft", None)
    ((1, 511), (9, 256))
    """
    if style not in STYLES:
        raise ValueError(
            f'`style` must be "tunable" or "fft". Received: style={style!r}'
        )
    count = None if capacity is None else check_count("capacity", capacity)
    if style == "fft":
        if units < 2 or units & (units - 1):
            raise ValueError(
                '`units` must be a power of two, at least 2, for style="fft". '
                f"Received: units={units}"
            )
        return units.bit_length() - 1, units // 2
    if units % 2:
        raise ValueError(
            f'`units` must be even for style="tunable". Received: units={units}'
        )
    if count is None or count % 2:
        raise ValueError(f"`capacity` must be even. Received: capacity={capacity}")
    return count // 2, units - 1


def givens_orthogonal(
    angles: Tensor, signs: Tensor | None = None, style: str = "tunable"
) -> Tensor:
    """The orthogonal matrix of layers of real rotations, and of signs.

    Args:
        angles: Tensor of the shape that `angles_shape` tells, in radians, float32
            or float64.
        signs: Tensor of shape `(n,)`, entries 1 and -1: the diagonal `D`. Default:
            `None`, all 1.
        style: `"tunable"` or `"fft"`. Default: `"tunable"`.

    Returns:
        Orthogonal tensor of shape `(n, n)` and the dtype of `angles`, for row
        vectors. Its determinant is the product of the signs.

    Raises:
        ValueError: If the shapes do not agree, there is no such style, or the dtype is
            another.

    Example:
    >>> givens_orthogonal(np.array([[np.pi / 2]]))
    [[0, 1], [-1, 0]]

    Reference:

    - [Jing et al., 2019](https://doi.org/10.1162/neco_a_01174)
    """
    angles = wide_tensor("angles", angles)
    signs = None if signs is None else ops.cast(signs, angles.dtype)
    _check_shapes(angles, style, signs=signs)
    matrix = ops.transpose(rotations(style)(pair_table(angles, style))[0])
    return matrix if signs is None else matrix * signs


def givens_unitary(
    angles: Tensor, phases: Tensor, output_phases: Tensor, style: str = "tunable"
) -> Tensor:
    """The unitary matrix of layers of rotations with phases, and of a diagonal.

    Args:
        angles: Tensor of the shape that `angles_shape` tells, in radians, float32
            or float64.
        phases: Phases of the second unit of each pair, of the same shape.
        output_phases: Phases of the diagonal `D`, of shape `(n,)`.
        style: `"tunable"` or `"fft"`. Default: `"tunable"`.

    Returns:
        Real tensor of shape `(2n, 2n)`, `[[Re W, Im W], [-Im W, Re W]]`, for row
        vectors `[Re h, Im h]`.

    Raises:
        ValueError: If the shapes do not agree, there is no such style, or the dtype is
            another.

    Example:
    >>> zero = np.zeros((1, 1))
    >>> givens_unitary(zero, zero, np.array([np.pi / 2, 0])).shape
    (4, 4)

    Reference:

    - [Jing et al., 2017](https://proceedings.mlr.press/v70/jing17a.html),
      equations 7 to 9
    """
    angles = wide_tensor("angles", angles)
    phases = wide_tensor("phases", phases)
    output_phases = wide_tensor("output_phases", output_phases)
    _check_shapes(angles, style, phases=phases, output_phases=output_phases)
    matrix = rotations(style)(pair_table(angles, style), pair_table(phases, style))
    rows = ops.concatenate([ops.transpose(matrix[0]), ops.transpose(matrix[1])], axis=1)
    return block(turn(rows, cos(output_phases), sin(output_phases)))


def _check_shapes(angles: Tensor, style: str, **others: Tensor | None) -> None:
    shape = tuple(angles.shape)
    layers, pairs = shape if len(shape) == 2 else (0, 0)
    units = pairs + 1 if style == "tunable" else 2 * pairs
    if len(shape) != 2 or shape != angles_shape(units, style, 2 * layers):
        raise ValueError(
            "`angles` must have the shape (layers / 2, n - 1) of the tunable style, or "
            f"(log2(n), n / 2) of the FFT style. Received: angles.shape={shape}, "
            f"style={style!r}"
        )
    for name, value in others.items():
        expected = shape if name == "phases" else (units,)
        if value is not None and tuple(value.shape) != expected:
            raise ValueError(
                f"`{name}` must have the shape {expected} for angles of the shape "
                f"{shape}. Received: {name}.shape={tuple(value.shape)}"
            )


class _Rotations(Parametrization):
    """Base of the layers of rotations: their number and their style."""

    takes = "phases"

    def __init__(self, capacity: int | None, style: str) -> None:
        self.capacity = capacity
        self.style = style

    def angles_shape(self, size: int) -> tuple[int, int]:
        """The shape of the angles, see `angles_shape`."""
        return angles_shape(size, self.style, self.capacity)

    def check(self, size: int) -> None:
        """Checks the number of layers, and the order."""
        self.angles_shape(size)

    def check_reaches_all(self, size: int) -> None:
        """Checks that the layers have an inverse map.

        Args:
            size: Number of units `n`.

        Raises:
            ValueError: If there are not as many layers of the tunable style as units.
        """
        if self.style != "tunable" or self.capacity not in (None, size):
            raise ValueError(
                'To start from a matrix, or to be set to one, `style` must be "tunable"'
                " and `capacity` the number of units: fewer layers do not reach it. "
                f"Received: style={self.style!r}, capacity={self.capacity}, "
                f"units={size}"
            )


@keras.saving.register_keras_serializable(package="keras_ortho")
class GivensUnitary(_Rotations):
    """Products of layers of rotations of complex pairs: EURNN's.

    Args:
        capacity: Number of layers of the tunable style. Default: 2.
        style: `"tunable"` or `"fft"`. Default: `"tunable"`.

    Example:
    >>> GivensUnitary(style="fft").variables(8)[0].shape
    (3, 4)
    """

    is_complex = True

    def __init__(self, capacity: int | None = 2, style: str = "tunable") -> None:
        super().__init__(capacity, style)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the angles, and the phases of the pairs and of the diagonal."""
        make = initializer or UniformPhases()
        second = independent(make)
        pairs = self.angles_shape(size)
        return [
            FreeVariable("recurrent_angles", pairs, make),
            FreeVariable("recurrent_phases", pairs, second),
            FreeVariable("output_phases", (size,), independent(second)),
        ]

    def matrix(self, *values: Tensor) -> Tensor:
        """Multiplies the layers, in the real form."""
        angles, phases, output_phases = values
        return givens_unitary(angles, phases, output_phases, self.style)

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds angles and phases, where there are `n` tunable layers."""
        self.check_reaches_all(len(matrix))
        return givens_unitary_inverse(matrix)


@keras.saving.register_keras_serializable(package="keras_ortho")
class GivensOrthogonal(_Rotations):
    """Products of layers of rotations of pairs: GORU's.

    Args:
        capacity: Number of layers of the tunable style. Default: `None`, `n`.
        style: `"fft"` or `"tunable"`. Default: `"fft"`.

    Raises:
        ValueError: If a number of layers is given for the FFT style.

    Example:
    >>> GivensOrthogonal().variables(8)[0].shape
    (3, 4)
    """

    def __init__(self, capacity: int | None = None, style: str = "fft") -> None:
        if capacity is not None and style == "fft":
            raise ValueError(
                '`capacity` is of style="tunable"; the FFT style has log2(n) layers. '
                f"Received: capacity={capacity!r}, style='fft'"
            )
        super().__init__(capacity, style)

    def angles_shape(self, size: int) -> tuple[int, int]:
        """The shape of the angles, see `angles_shape`."""
        all_layers = self.style == "tunable" and self.capacity is None
        return angles_shape(size, self.style, size if all_layers else self.capacity)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the angles, and for the tunable style the signs."""
        pairs = self.angles_shape(size)
        angles = FreeVariable("recurrent_angles", pairs, initializer or UniformPhases())
        if self.style != "tunable":
            return [angles]
        ones = keras.initializers.Ones()
        return [angles, FreeVariable("recurrent_signs", (size,), ones, trainable=False)]

    def matrix(self, *values: Tensor) -> Tensor:
        """Multiplies the layers and, where there are, the signs."""
        angles, signs = values if len(values) == 2 else (*values, None)
        return givens_orthogonal(angles, signs, self.style)

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds angles and signs, where there are `n` tunable layers."""
        self.check_reaches_all(len(matrix))
        return givens_orthogonal_inverse(matrix)
