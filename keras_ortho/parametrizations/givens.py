"""Orthogonal and unitary matrices as products of layers of Givens rotations.

For row vectors, `W = L_1 L_2 ... L_k D`. Each layer rotates disjoint pairs `(i, j)`,

    h_i' = cos(t) h_i - exp(i p) sin(t) h_j
    h_j' = sin(t) h_i + exp(i p) cos(t) h_j

with `p = 0` in the real case. `D` is diagonal, with phases or, in the real case, signs.
The `"tunable"` style has any even number of layers, which alternate between the
neighbors `(0, 1), (2, 3) ...` and `(1, 2), (3, 4) ...`. The `"fft"` style has
`log2(n)` layers, which pair units at the distances `n / 2`, `n / 4` ... 1 within blocks
of twice that size. Jing et al., "Tunable efficient unitary neural networks (EUNN) and
their application to RNNs", ICML 2017.
"""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend.elementary import cos, sin
from keras_ortho.backend.precision import wide_tensor
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_choice, check_count
from keras_ortho.parametrizations.arithmetic import block, turn
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.free_initializers import UniformPhases, independent
from keras_ortho.parametrizations.givens_inverse import (
    givens_orthogonal_inverse,
    givens_unitary_inverse,
)
from keras_ortho.parametrizations.givens_layers import pair_table, rotations

STYLES = ("tunable", "fft")


def angles_shape(units: int, style: str, capacity: int | None) -> tuple[int, int]:
    """Returns the shape of the angles of all layers."""
    check_choice("style", style, STYLES)
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
    """Computes an orthogonal matrix from layers of real rotations and signs.

    Args:
        angles: Angles in radians, a float32 or float64 tensor of shape
            `(layers / 2, n - 1)` in the tunable style, `(log2(n), n / 2)` in the FFT
            style.
        signs: Diagonal of `D`, a tensor of shape `(n,)` with entries 1 and -1.
            Default: `None`, all 1.
        style: `"tunable"` or `"fft"`. Default: `"tunable"`.

    Returns:
        Orthogonal tensor of shape `(n, n)` and the dtype of `angles`, for row
        vectors. Its determinant is the product of the signs.

    Raises:
        ValueError: If the shapes do not agree, the style is unknown, or the dtype is
            not float32 or float64.

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
    """Computes a unitary matrix from layers of complex rotations and a diagonal.

    Args:
        angles: Angles in radians, a float32 or float64 tensor of shape
            `(layers / 2, n - 1)` in the tunable style, `(log2(n), n / 2)` in the FFT
            style.
        phases: Phases of the second unit of each pair, of the same shape.
        output_phases: Phases of the diagonal `D`, of shape `(n,)`.
        style: `"tunable"` or `"fft"`. Default: `"tunable"`.

    Returns:
        Real tensor of shape `(2n, 2n)`, `[[Re W, Im W], [-Im W, Re W]]`, for row
        vectors `[Re h, Im h]`.

    Raises:
        ValueError: If the shapes do not agree, the style is unknown, or a dtype is
            not float32 or float64.

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
            "`angles` must have the shape (layers / 2, n - 1) for the tunable style, "
            f"or (log2(n), n / 2) for the FFT style. Received: angles.shape={shape}, "
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
    """Base class of products of layers of rotations."""

    takes = "phases"

    def __init__(self, capacity: int | None, style: str) -> None:
        self.capacity = capacity
        self.style = style

    def angles_shape(self, size: int) -> tuple[int, int]:
        """Returns the shape of the angles, see the function `angles_shape`."""
        return angles_shape(size, self.style, self.capacity)

    def check(self, size: int) -> None:
        """Checks the style, the number of layers and the number of units."""
        self.angles_shape(size)

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds the values of the variables, if there are `n` tunable layers."""
        if self.style != "tunable" or self.capacity not in (None, len(matrix)):
            raise ValueError(
                "To start from a given matrix, or to be set to one, `style` must be "
                "'tunable' and `capacity` the number of units: fewer layers cannot "
                f"represent every matrix. Received: style={self.style!r}, "
                f"capacity={self.capacity}, units={len(matrix)}"
            )
        invert = (
            givens_unitary_inverse if self.is_complex else givens_orthogonal_inverse
        )
        return invert(matrix)


@keras.saving.register_keras_serializable(package="keras_ortho")
class GivensUnitary(_Rotations):
    """Products of layers of rotations of complex pairs, as in EURNN.

    Args:
        capacity: Number of layers in the tunable style, even and positive. Not used in
            the FFT style. Default: 2.
        style: `"tunable"` or `"fft"`. Default: `"tunable"`.

    Example:
    >>> GivensUnitary(style="fft").variables(8)[0].shape
    (3, 4)
    """

    is_complex = True

    def __init__(self, capacity: int | None = 2, style: str = "tunable") -> None:
        super().__init__(capacity, style)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the angles, the phases of the pairs and those of the diagonal."""
        make = initializer or UniformPhases()
        second = independent(make)
        pairs = self.angles_shape(size)
        return [
            FreeVariable("recurrent_angles", pairs, make),
            FreeVariable("recurrent_phases", pairs, second),
            FreeVariable("output_phases", (size,), independent(second)),
        ]

    def matrix(self, *values: Tensor) -> Tensor:
        """Multiplies the layers, and returns the real form of the product."""
        angles, phases, output_phases = values
        return givens_unitary(angles, phases, output_phases, self.style)


@keras.saving.register_keras_serializable(package="keras_ortho")
class GivensOrthogonal(_Rotations):
    """Products of layers of rotations of real pairs, as in GORU.

    Args:
        capacity: Number of layers in the tunable style, even and positive. Default:
            `None`, which means `n`.
        style: `"fft"` or `"tunable"`. Default: `"fft"`.

    Raises:
        ValueError: If `capacity` is given for the FFT style.

    Example:
    >>> GivensOrthogonal().variables(8)[0].shape
    (3, 4)
    """

    def __init__(self, capacity: int | None = None, style: str = "fft") -> None:
        if capacity is not None and style == "fft":
            raise ValueError(
                "`capacity` is for style='tunable'; the FFT style always has log2(n) "
                f"layers. Received: capacity={capacity!r}, style='fft'"
            )
        super().__init__(capacity, style)

    def angles_shape(self, size: int) -> tuple[int, int]:
        """Returns the shape of the angles, see the function `angles_shape`."""
        all_layers = self.style == "tunable" and self.capacity is None
        return angles_shape(size, self.style, size if all_layers else self.capacity)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the angles and, in the tunable style, the signs."""
        pairs = self.angles_shape(size)
        angles = FreeVariable("recurrent_angles", pairs, initializer or UniformPhases())
        if self.style != "tunable":
            return [angles]
        ones = keras.initializers.Ones()
        return [angles, FreeVariable("recurrent_signs", (size,), ones, trainable=False)]

    def matrix(self, *values: Tensor) -> Tensor:
        """Multiplies the layers and, if there are any, the signs."""
        angles, signs = values if len(values) == 2 else (*values, None)
        return givens_orthogonal(angles, signs, self.style)
