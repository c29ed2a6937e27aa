"""Activations with their derivatives, as the recurrence needs them.

Each is a class with one instance for each setting, and knows its derivative in terms
of what the recurrence keeps: the states, and where these do not tell it, something
more.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import keras
from keras import ops

from keras_ortho.activations import (
    MODULUS_EPSILON,
    LeakyReLU,
    exact_scale,
    is_unsorted,
    modulus_scale,
    oplu,
    real_modrelu,
    real_modrelu_gradients,
    scale_units,
    smallest_modulus,
    smoothed_modrelu,
    swap_pairs,
    twice,
)
from keras_ortho.backend.elementary import tanh
from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.precise_activations import precise


class Pointwise:
    """An activation of the units of a step, with its derivative.

    Attributes:
        own_bias: Whether the bias is inside, rather than added before.
    """

    own_bias: ClassVar[bool] = False

    def apply(self, inputs: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
        """Applies the activation.

        Args:
            inputs: Pre-activation of shape `(batch, state_size)`, with the bias
                unless that is inside.
            bias: Tensor of shape `(n,)`.

        Returns:
            The value, a tensor of the shape of `inputs`, and what the derivative needs
            besides: see `kept`.
        """
        raise NotImplementedError

    def kept(self, size: int, dtype: str) -> tuple[tuple[int, str], ...]:
        """Describes what `apply` gives, and the derivative needs.

        Args:
            size: Entries of the state of a sequence.
            dtype: That of the state.

        Returns:
            For each tensor, the value first, its entries for a sequence and its dtype.
        """
        return ((size, dtype),)

    def pull(
        self, kept: tuple[Tensor, ...], bias: Tensor, upstream: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Takes the gradient of a step from its output to its inputs.

        Args:
            kept: What `apply` gave.
            bias: Tensor of shape `(n,)`.
            upstream: Gradient with respect to the output.

        Returns:
            A pair of the gradients with respect to the pre-activation, and to the
            bias of each sequence, of shape `(batch, n)`.
        """
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Elementwise(Pointwise):
    """A real function whose value tells its derivative, the bias added before.

    Attributes:
        function: From a tensor to its values.
        slope: From the values and the upstream gradient to the gradient.
    """

    function: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor, Tensor], Tensor]

    def apply(self, inputs: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
        """Applies the function: see `Pointwise`."""
        return (self.function(inputs),)

    def pull(
        self, kept: tuple[Tensor, ...], bias: Tensor, upstream: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Multiplies with the derivative: see `Pointwise`."""
        gradient = self.slope(kept[0], upstream)
        return gradient, gradient


@dataclasses.dataclass(frozen=True)
class Opaque(Pointwise):
    """A function that adds the bias itself, for single steps: it has no `pull`.

    Attributes:
        function: From a tensor to its values.
    """

    own_bias = True

    function: Callable[[Tensor], Tensor]

    def apply(self, inputs: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
        """Applies the function: see `Pointwise`."""
        return (self.function(inputs),)


class RealModReLU(Pointwise):
    """`sign(z) relu(|z| + b)`; where it is not zero the derivative is one."""

    own_bias = True

    def apply(self, inputs: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
        """Applies modReLU: see `Pointwise`."""
        return (real_modrelu(inputs, bias),)

    def pull(
        self, kept: tuple[Tensor, ...], bias: Tensor, upstream: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Keeps what is not zero: see `Pointwise`."""
        return real_modrelu_gradients(kept[0], upstream)


class OPLU(Pointwise):
    """Pairs of units in order; the gradient goes back the way that they came."""

    def apply(self, inputs: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
        """Sorts, and tells which pairs it swapped: see `Pointwise`."""
        swapped = is_unsorted(inputs)
        return swap_pairs(inputs, swapped), swapped

    def kept(self, size: int, dtype: str) -> tuple[tuple[int, str], ...]:
        """Has the swaps, too: see `Pointwise`."""
        return (size, dtype), (size // 2, "bool")

    def pull(
        self, kept: tuple[Tensor, ...], bias: Tensor, upstream: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Swaps the same pairs: see `Pointwise`."""
        gradient = swap_pairs(upstream, kept[1])
        return gradient, gradient


class ComplexModReLU(Pointwise):
    """`z relu(1 + b / |z|)`, on real parts before imaginary parts.

    With `s = relu(1 + b / |z|)` the value is `h = s z`, and the gradient of a unit is
    `s g`, and, where that is not zero, `(1 - s) <u, g> u` along its direction
    `u = h / |h|`. The factor is kept: near `z = 0` the value does not tell it.
    """

    own_bias = True

    def apply(self, inputs: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
        """Applies modReLU, and gives the factor: see `Pointwise`."""
        scale = exact_scale(inputs, bias)
        return scale_units(inputs, scale), scale

    def kept(self, size: int, dtype: str) -> tuple[tuple[int, str], ...]:
        """Has the factor, too: see `Pointwise`."""
        return (size, dtype), (size // 2, wide_dtype(dtype))

    def pull(
        self, kept: tuple[Tensor, ...], bias: Tensor, upstream: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Applies the two-dimensional derivative: see `Pointwise`."""
        value, scale = kept
        inner = _inner(value, upstream, scale.dtype)
        square = _inner(value, value, scale.dtype)
        smallest = smallest_modulus(value.dtype) ** 2
        # Not of 0, for second derivatives.
        modulus = ops.sqrt(ops.maximum(square, smallest))
        # A product, which takes less time than a choice.
        to_bias = ops.cast(square > smallest, scale.dtype) * inner / modulus
        radial = (1.0 - scale) * to_bias / modulus
        gradient = _pulled(value, upstream, scale, radial)
        return gradient, ops.cast(to_bias, upstream.dtype)


class SmoothedModReLU(Pointwise):
    """`z relu(m + b) / (m + epsilon)`, on real parts before imaginary parts.

    With `s(m) = relu(m + b) / (m + epsilon)` the gradient of a unit is
    `s g + (s'(m) / m) <z, g> z`. The pre-activation is kept.
    """

    own_bias = True

    def apply(self, inputs: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
        """Applies modReLU, and gives the pre-activation: see `Pointwise`."""
        return smoothed_modrelu(inputs, bias), inputs

    def kept(self, size: int, dtype: str) -> tuple[tuple[int, str], ...]:
        """Has the pre-activation, too: see `Pointwise`."""
        return (size, dtype), (size, dtype)

    def pull(
        self, kept: tuple[Tensor, ...], bias: Tensor, upstream: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Applies the two-dimensional derivative: see `Pointwise`."""
        _, z = kept
        scale, modulus = modulus_scale(z, bias)
        active = ops.cast(scale > 0, scale.dtype)
        inner = _inner(z, upstream, scale.dtype) / (modulus + MODULUS_EPSILON)
        radial = (active - scale) * inner / modulus
        to_bias = ops.cast(active * inner, upstream.dtype)
        return _pulled(z, upstream, scale, radial), to_bias


def _inner(z: Tensor, gradient: Tensor, dtype: str) -> Tensor:
    """`<z, g>` of each unit."""
    product = ops.cast(z, dtype) * ops.cast(gradient, dtype)
    real, imaginary = ops.split(product, 2, axis=-1)
    return real + imaginary


def _pulled(z: Tensor, gradient: Tensor, scale: Tensor, radial: Tensor) -> Tensor:
    """`scale g + radial z`, in the dtype of `g`."""
    dtype = scale.dtype
    whole = twice(scale) * ops.cast(gradient, dtype)
    whole = whole + twice(radial) * ops.cast(z, dtype)
    return ops.cast(whole, gradient.dtype)


REAL_MODRELU = RealModReLU()
COMPLEX_MODRELU = ComplexModReLU()
SMOOTHED_MODRELU = SmoothedModReLU()

_KNOWN = {
    keras.activations.linear: Elementwise(lambda z: z, lambda h, g: g),
    keras.activations.relu: Elementwise(
        ops.relu, lambda h, g: ops.where(h > 0, g, ops.zeros_like(g))
    ),
    tanh: Elementwise(tanh, lambda h, g: (1 - h * h) * g),
    keras.activations.sigmoid: Elementwise(ops.sigmoid, lambda h, g: h * (1 - h) * g),
    oplu: OPLU(),
}


def _leaky_relu(activation: LeakyReLU) -> Pointwise:
    slope = activation.negative_slope
    return Elementwise(activation, lambda h, g: ops.where(h > 0, g, slope * g))


def find(activation: Any, complex_state: bool) -> Pointwise | None:
    """Finds the derivative of a cell's activation.

    Args:
        activation: `"modrelu"`, `"smoothed_modrelu"`, or a function.
        complex_state: Whether the units are complex.

    Returns:
        The activation with its derivative, or `None` where that is not known.

    Example:
    >>> find("modrelu", complex_state=False).own_bias
    True
    """
    if activation == "modrelu":
        return COMPLEX_MODRELU if complex_state else REAL_MODRELU
    if activation == "smoothed_modrelu":
        return SMOOTHED_MODRELU
    activation = precise(activation)
    if isinstance(activation, LeakyReLU):
        return _leaky_relu(activation)
    try:
        return _KNOWN.get(activation)
    except TypeError:  # A callable that cannot be hashed.
        return None
