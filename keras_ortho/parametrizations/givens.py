"""Orthogonal and unitary matrices as products of layers of Givens rotations.

For row vectors, `W = L_1 L_2 ... L_k D`. Each layer rotates disjoint pairs `(i, j)`,

    h_i' = cos(t) h_i - exp(i p) sin(t) h_j
    h_j' = sin(t) h_i + exp(i p) cos(t) h_j

with `p = 0` in the real case. `D` is diagonal, with phases or, in the real case, signs.
The layers of the `"tunable"` style, any even number, alternate between the neighbors
`(0, 1), (2, 3) ...` and `(1, 2), (3, 4) ...`. The `log2(n)` layers of the `"fft"` style
pair units at the distances `n / 2`, `n / 4` ... 1 within blocks of twice that size.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend import scan, stack, with_gradient
from keras_ortho.backend.elementary import cos, sin
from keras_ortho.backend.precision import wide_tensor
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check, check_choice, check_count
from keras_ortho.parametrizations.arithmetic import (
    block,
    nearest_orthogonal,
    nearest_unitary,
    placed,
    turn,
)
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.free_initializers import UniformPhases, independent

STYLES = ("tunable", "fft")
# Largest number of layers that are unrolled rather than run as a loop.
MAX_UNROLLED = 16


def angles_shape(units: int, style: str, capacity: int | None) -> tuple[int, int]:
    """Returns the shape of the angles of all layers."""
    check_choice("style", style, STYLES)
    layers = 0 if capacity is None else check_count("capacity", capacity)
    if style == "fft":
        is_power = units > 1 and units & (units - 1) == 0
        wanted = 'be a power of two, at least 2, for style="fft"'
        check(is_power, "units", wanted, f"units={units}")
        return units.bit_length() - 1, units // 2
    for name, count in (("units", units), ("capacity", layers)):
        wanted = 'be even for style="tunable"'
        check(count and count % 2 == 0, name, wanted, f"{name}={count}")
    return layers // 2, units - 1


@functools.cache
def _pairs(units: int, style: str, layers: int) -> tuple[np.ndarray, ...]:
    """Returns three arrays `(layers, n)`: which partner each unit has in each layer.

    The second array numbers the angles of the pairs, from 1; a unit without a partner
    has itself, and the number 0. The third one tells the second units of the pairs.
    """
    unit, layer = np.arange(units), np.arange(layers)[:, None]
    if style == "fft":
        distance = units >> (layer + 1)
        second = unit // distance % 2
        first = unit - second * distance
        pair = first // (2 * distance) * distance + first % distance
        return first + distance * (1 - second), 1 + layer * (units // 2) + pair, second
    second = (unit + layer) % 2
    partner = unit + 1 - 2 * second
    row, column = layer // 2, (unit - second) // 2 + (units // 2) * (layer % 2)
    alone = (partner < 0) | (partner == units)
    number = np.where(alone, 0, 1 + row * (units - 1) + column)
    return np.where(alone, unit, partner), number, second


def _turn(values: Tensor, phases: Tensor) -> Tensor:
    """Multiplies the rows of complex numbers, pairs of reals, by `exp(i p)`."""
    real, imaginary = values[0], values[1]
    cosine, sine = cos(phases)[:, None], sin(phases)[:, None]
    return ops.stack(
        [cosine * real - sine * imaginary, sine * real + cosine * imaginary]
    )


# The matrices below are transposed, `(parts, n, n)`: the operands of the rotations are
# contiguous. The angle of the first unit of a pair is negative, so that both become
# `cos(t) h + sin(t) partner`. The backward pass needs no intermediate results: it
# undoes each rotation by its inverse, which also carries the gradient back.
def _rotate(
    matrix: Tensor, partner: Tensor, angles: Tensor, *phases: Tensor
) -> tuple[Tensor, tuple[()]]:
    """Applies a layer."""
    if phases:
        matrix = _turn(matrix, *phases)
    cosine, sine = cos(angles)[:, None], sin(angles)[:, None]
    return cosine * matrix + sine * ops.take(matrix, partner, axis=1), ()


def _rotate_back(
    both: Tensor, partner: Tensor, angles: Tensor, *phases: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Undoes a layer, and computes the gradients of its angles and phases."""
    size = both.shape[1]
    swapped = ops.take(both, partner, axis=1)
    gradients = [ops.sum(both[..., size:] * swapped[..., :size], axis=(0, 2))]
    both = cos(angles)[:, None] * both - sin(angles)[:, None] * swapped
    if phases:
        value, upstream = both[..., :size], both[..., size:]
        along = upstream[1] * value[0] - upstream[0] * value[1]
        gradients.append(ops.sum(along, axis=1))
        both = _turn(both, -phases[0])
    return both, tuple(gradients)


def _over_layers(
    step: Callable[..., Any],
    matrix: Tensor,
    partners: np.ndarray,
    tables: Sequence[Tensor],
    backward: bool = False,
) -> tuple[Tensor, list[Tensor]]:
    """Takes a step for each layer, and stacks what the steps return."""
    layers, size = partners.shape
    if layers > MAX_UNROLLED:

        def of_scan(carry: Any, _: Tensor, layer: Any) -> tuple[Any, Any]:
            matrix, found = step(carry[0], *layer)
            return (matrix,), found

        (matrix,), found = scan(
            of_scan,
            (matrix,),
            (ops.convert_to_tensor(partners, dtype="int32"), *tables),
            length=layers,
            collect=(((size,), matrix.dtype),) * len(tables) * backward,
            reverse=backward,
        )
        return matrix, [stack(each) for each in found]
    collected: list[tuple[Tensor, ...]] = [()] * layers
    for i in reversed(range(layers)) if backward else range(layers):
        matrix, collected[i] = step(
            matrix, partners[i], *(table[i] for table in tables)
        )
    return matrix, [ops.stack(column) for column in zip(*collected, strict=True)]


@functools.cache
def _rotations(units: int, style: str, layers: int) -> Callable[..., Tensor]:
    """Makes the function that maps angles of the units to the product of all layers."""
    partners, _, _ = _pairs(units, style, layers)

    def forward(*tables: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        eye = ops.eye(units, dtype=tables[0].dtype)
        matrix = ops.stack([eye, ops.zeros_like(eye)][: len(tables)])
        matrix, _ = _over_layers(_rotate, matrix, partners, tables)
        return matrix, (matrix, *tables)

    def backward(saved: tuple[Tensor, ...], upstream: Tensor) -> list[Tensor]:
        matrix, *tables = saved
        both = ops.concatenate([matrix, upstream], axis=2)
        return _over_layers(_rotate_back, both, partners, tables, backward=True)[1]

    return with_gradient(forward, backward)


def _product(style: str, angles: Tensor, *phases: Tensor) -> Tensor:
    """Returns the product of all layers, transposed."""
    rows, columns = angles.shape
    units, layers = (2 * columns, rows) if style == "fft" else (columns + 1, 2 * rows)
    _, numbers, second = _pairs(units, style, layers)
    # Each unit gets the angle or phase of its pair.
    signed = placed(ops.reshape(angles, (-1,)), numbers) * (2.0 * second - 1.0)
    tables = [placed(ops.reshape(x, (-1,)), numbers * second) for x in phases]
    return _rotations(units, style, layers)(signed, *tables)


# (first unit of the pair, angle, phase of the second unit)
_Rotation = tuple[int, float, float]


def givens_unitary_inverse(
    matrix: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Finds the angles and phases of `n` tunable layers that make a unitary matrix.

    W. R. Clements et al., "Optimal design for universal multiport interferometers",
    Optica 3, 2016.
    """
    unitary = nearest_unitary(matrix)
    rotations, after, diagonal = _eliminate(unitary)
    for first, angle, phase in after:
        # diag(a, b) R(t) diag(exp(ip), 1) = diag(1, b / a) R(t) diag(a exp(ip), a)
        a, b = diagonal[first : first + 2]
        rotations.append((first, angle, float(np.angle(b * a.conj()))))
        diagonal[first : first + 2] = a * np.exp(1j * phase), a
    angles, phases = _layers(rotations, len(unitary))
    return angles, phases, np.angle(diagonal)


def givens_orthogonal_inverse(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Finds the angles and signs of `n` tunable layers of an orthogonal matrix."""
    orthogonal = nearest_orthogonal(matrix)
    before, after, diagonal = _eliminate(orthogonal)
    # Two different signs reverse the rotation: D R(t) = R(-t) D.
    moved = [(i, t * diagonal[i] * diagonal[i + 1], 0.0) for i, t, _ in after]
    angles, _ = _layers([*before, *moved], len(orthogonal))
    return angles, diagonal


def _angles(x: complex, y: complex) -> tuple[float, float]:
    """Finds `t` and `p` with `cos(t) x = exp(-ip) sin(t) y`; `p` is 0 for reals."""
    if np.isrealobj(x):
        return float(np.arctan2(x, y)), 0.0
    return float(np.arctan2(abs(x), abs(y))), float(np.angle(y * np.conj(x)))


def _eliminate(
    matrix: np.ndarray,
) -> tuple[list[_Rotation], list[_Rotation], np.ndarray]:
    """Factors a matrix into rotations, a diagonal, and more rotations.

    With `R(t) = [[cos, sin], [-sin, cos]]`, the rotations before the diagonal are
    `diag(1, exp(ip)) R(t)`, and those after it `R(t) diag(exp(ip), 1)`. They eliminate
    one diagonal after another from the lower left corner, by rows and columns in turn:
    these are the rows of the matrix that is mirrored at its other diagonal.
    """
    size = len(matrix)
    check(size % 2 == 0, "matrix", "be of even order", f"matrix.shape={matrix.shape}")
    reduced = matrix.copy()
    before: list[_Rotation] = []
    after: list[_Rotation] = []
    for diagonal in range(size - 1):
        by_rows = diagonal % 2 == 0
        rows = reduced if by_rows else reduced[::-1, ::-1].T
        for column in range(diagonal + 1):
            row = size - 1 - diagonal + column
            first, second = rows[row - 1], rows[row]
            angle, phase = _angles(-second[column], first[column])
            if by_rows:
                before.append((row - 1, angle, -phase))
            else:
                after.insert(0, (size - 1 - row, angle, -phase))
            turned = second * np.exp(1j * phase) if phase else second
            cosine, sine = np.cos(angle), np.sin(angle)
            rows[row - 1], rows[row] = (
                cosine * first - sine * turned,
                sine * first + cosine * turned,
            )
            rows[row, column] = 0
    left = np.diag(reduced).copy()
    return before, after, left / np.abs(left)


def _layers(rotations: list[_Rotation], size: int) -> tuple[np.ndarray, np.ndarray]:
    """Puts each rotation into the first layer in which its pair is free."""
    table = np.zeros((2, size // 2, size - 1))
    free = np.zeros(size, int)  # The first free layer of each unit.
    for first, angle, phase in rotations:
        layer = free[first : first + 2].max()
        layer += (layer + first) % 2  # In even layers pairs begin with even units.
        free[first : first + 2] = layer + 1
        column = first // 2 + (size // 2) * (first % 2)
        table[:, layer // 2, column] = angle, phase
    return table[0], table[1]


class _Rotations(Parametrization):
    """Base class of products of layers of rotations."""

    takes = "phases"

    def __init__(self, capacity: int | None, style: str) -> None:
        self.capacity = capacity
        self.style = style

    def check(self, size: int) -> None:
        """Checks the style, the number of layers and the number of units."""
        self.variables(size, keras.initializers.Zeros())  # They draw no seed.

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds the values of the variables, if there are `n` tunable layers."""
        if self.style != "tunable" or self.capacity not in (None, len(matrix)):
            raise ValueError(
                "To start from a given matrix, or to be set to one, `style` must be "
                "'tunable' and `capacity` the number of units: fewer layers cannot "
                f"represent every matrix. Received: style={self.style!r}, "
                f"capacity={self.capacity}, units={len(matrix)}"
            )
        if self.is_complex:
            return givens_unitary_inverse(matrix)
        return givens_orthogonal_inverse(matrix)


@keras.saving.register_keras_serializable(package="keras_ortho")
class GivensUnitary(_Rotations):
    """Products of layers of rotations of complex pairs, as in EURNN.

    The variables are the angles and the phases of the pairs, in radians, each of shape
    `(capacity / 2, n - 1)`, or `(log2(n), n / 2)` in the FFT style, and the phases of
    the diagonal, `(n,)`. Only `n` tunable layers have an inverse.

    Args:
        capacity: Number of layers in the tunable style, even and positive. Not used in
            the FFT style. Default: 2.
        style: `"tunable"` or `"fft"`. Default: `"tunable"`.

    Example:
    >>> GivensUnitary(style="fft").variables(8)[0].shape
    (3, 4)

    Reference:
    [Jing et al., 2017](https://proceedings.mlr.press/v70/jing17a.html), equation 7
    """

    is_complex = True

    def __init__(self, capacity: int | None = 2, style: str = "tunable") -> None:
        super().__init__(capacity, style)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the angles, the phases of the pairs and those of the diagonal."""
        make = initializer or UniformPhases()
        second = independent(make)
        pairs = angles_shape(size, self.style, self.capacity)
        return [
            FreeVariable("recurrent_angles", pairs, make),
            FreeVariable("recurrent_phases", pairs, second),
            FreeVariable("output_phases", (size,), independent(second)),
        ]

    def matrix(self, *values: Tensor) -> Tensor:
        """Multiplies the layers, and returns the real form of the product."""
        names = "angles", "phases", "output_phases"
        angles, phases, output_phases = map(wide_tensor, names, values)
        found = _product(self.style, angles, phases)
        rows = ops.concatenate([ops.transpose(found[0]), ops.transpose(found[1])], 1)
        return block(turn(rows, cos(output_phases), sin(output_phases)))


@keras.saving.register_keras_serializable(package="keras_ortho")
class GivensOrthogonal(_Rotations):
    """Products of layers of rotations of real pairs, as in GORU.

    The variables are the angles, as in `GivensUnitary`, and in the tunable style the
    signs, which are not trained. Only `n` tunable layers have an inverse.

    Args:
        capacity: Number of layers in the tunable style, even and positive. Default:
            `None`, which means `n`.
        style: `"fft"` or `"tunable"`. Default: `"fft"`.

    Raises:
        ValueError: If `capacity` is given for the FFT style.

    Example:
    >>> GivensOrthogonal().variables(8)[0].shape
    (3, 4)

    Reference:
    [Jing et al., 2019](https://doi.org/10.1162/neco_a_01174)
    """

    def __init__(self, capacity: int | None = None, style: str = "fft") -> None:
        fits = capacity is None or style != "fft"
        wanted = "be None for style='fft', which always has log2(n) layers"
        check(fits, "capacity", wanted, f"capacity={capacity!r}, style={style!r}")
        super().__init__(capacity, style)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the angles and, in the tunable style, the signs."""
        make, ones = initializer or UniformPhases(), keras.initializers.Ones()
        capacity = size if self.capacity is None else self.capacity
        angles = FreeVariable(
            "recurrent_angles", angles_shape(size, self.style, capacity), make
        )
        if self.style == "fft":
            return [angles]
        return [angles, FreeVariable("recurrent_signs", (size,), ones, trainable=False)]

    def matrix(self, *values: Tensor) -> Tensor:
        """Multiplies the layers and, if there are any, the signs."""
        angles = wide_tensor("angles", values[0])
        matrix = ops.transpose(_product(self.style, angles)[0])
        if self.style == "fft":
            return matrix
        return matrix * ops.cast(values[1], angles.dtype)
