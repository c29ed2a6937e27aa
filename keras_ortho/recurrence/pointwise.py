"""Activations with their derivatives, in the form that the recurrence needs.

Each activation is a class, with one instance per setting. It computes its derivative
from what the recurrence keeps: its outputs, and additional tensors if the outputs do
not determine the derivative.
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
    precise,
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


class Pointwise:
    """An activation that a step applies, with its derivative.

    Attributes:
        own_bias: Whether the activation adds the bias itself. Otherwise, the inputs
            include the bias.
    """

    own_bias: ClassVar[bool] = False

    def apply(self, inputs: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
        """Applies the activation.

        Args:
            inputs: Pre-activation of shape `(batch, state_size)`, which includes the
                bias unless `own_bias` is `True`.
            bias: Tensor of shape `(n,)`.

        Returns:
            The output, a tensor of the shape of `inputs`, followed by the other
            tensors that the derivative needs: see `kept`.
        """
        raise NotImplementedError

    def kept(self, size: int, dtype: str) -> tuple[tuple[int, str], ...]:
        """Describes the tensors that `apply` returns and `pull` needs.

        Args:
            size: Number of entries of the state of a sequence.
            dtype: Dtype of the state.

        Returns:
            For each tensor, the output first, a pair of its number of entries per
            sequence and its dtype.
        """
        return ((size, dtype),)

    def pull(
        self, kept: tuple[Tensor, ...], bias: Tensor, upstream: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Computes the gradients with respect to the inputs and the bias.

        Args:
            kept: The tensors that `apply` returned.
            bias: Tensor of shape `(n,)`.
            upstream: Upstream gradient, with respect to the output.

        Returns:
            A pair of the gradient with respect to the pre-activation, and the gradient
            with respect to the bias for each sequence, of shape `(batch, n)`.
        """
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Elementwise(Pointwise):
    """A real function whose derivative follows from its output, without `own_bias`."""

    function: Callable[[Tensor], Tensor]
    # Maps the outputs and the upstream gradient to the gradient.
    slope: Callable[[Tensor, Tensor], Tensor]

    def apply(self, inputs: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
        """Applies the function: see `Pointwise`."""
        return (self.function(inputs),)

    def pull(
        self, kept: tuple[Tensor, ...], bias: Tensor, upstream: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Multiplies by the derivative: see `Pointwise`."""
        gradient = self.slope(kept[0], upstream)
        return gradient, gradient


@dataclasses.dataclass(frozen=True)
class Opaque(Pointwise):
    """A function that adds the bias itself. It has no `pull`: for single steps only."""

    own_bias = True

    function: Callable[[Tensor], Tensor]

    def apply(self, inputs: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
        """Applies the function: see `Pointwise`."""
        return (self.function(inputs),)


class RealModReLU(Pointwise):
    """`sign(z) relu(|z| + b)`, whose derivative is 1 where the output is not zero."""

    own_bias = True

    def apply(self, inputs: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
        """Applies modReLU: see `Pointwise`."""
        return (real_modrelu(inputs, bias),)

    def pull(
        self, kept: tuple[Tensor, ...], bias: Tensor, upstream: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Passes the gradient where the output is not zero: see `Pointwise`."""
        return real_modrelu_gradients(kept[0], upstream)


class OPLU(Pointwise):
    """OPLU, which sorts pairs of units. Its gradient reverses the swaps."""

    def apply(self, inputs: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
        """Sorts the pairs, and returns which ones it swapped: see `Pointwise`."""
        swapped = is_unsorted(inputs)
        return swap_pairs(inputs, swapped), swapped

    def kept(self, size: int, dtype: str) -> tuple[tuple[int, str], ...]:
        """Includes the swaps: see `Pointwise`."""
        return (size, dtype), (size // 2, "bool")

    def pull(
        self, kept: tuple[Tensor, ...], bias: Tensor, upstream: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Swaps the same pairs in the gradient: see `Pointwise`."""
        gradient = swap_pairs(upstream, kept[1])
        return gradient, gradient


class ComplexModReLU(Pointwise):
    """`z relu(1 + b / |z|)`, with the real parts before the imaginary parts.

    With `s = relu(1 + b / |z|)`, the output is `h = s z`. The gradient for a unit is
    `s g`, plus, if `h` is not zero, `(1 - s) <u, g> u` in the direction `u = h / |h|`.
    The factor `s` is kept: near `z = 0`, the output does not determine it.
    """

    own_bias = True

    def apply(self, inputs: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
        """Applies modReLU, and returns the factor as well: see `Pointwise`."""
        scale = exact_scale(inputs, bias)
        return scale_units(inputs, scale), scale

    def kept(self, size: int, dtype: str) -> tuple[tuple[int, str], ...]:
        """Includes the factor: see `Pointwise`."""
        return (size, dtype), (size // 2, wide_dtype(dtype))

    def pull(
        self, kept: tuple[Tensor, ...], bias: Tensor, upstream: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Applies the two-dimensional derivative: see `Pointwise`."""
        value, scale = kept
        inner = _inner(value, upstream, scale.dtype)
        square = _inner(value, value, scale.dtype)
        smallest = smallest_modulus(value.dtype) ** 2
        # Not the root of 0, whose second derivative is not finite.
        modulus = ops.sqrt(ops.maximum(square, smallest))
        # A product, which is faster than a selection.
        to_bias = ops.cast(square > smallest, scale.dtype) * inner / modulus
        radial = (1.0 - scale) * to_bias / modulus
        gradient = _pulled(value, upstream, scale, radial)
        return gradient, ops.cast(to_bias, upstream.dtype)


class SmoothedModReLU(Pointwise):
    """`z relu(m + b) / (m + epsilon)`, with the real parts before the imaginary parts.

    With the smoothed modulus `m` and `s(m) = relu(m + b) / (m + epsilon)`, the gradient
    for a unit is `s g + (s'(m) / m) <z, g> z`. The pre-activation `z` is kept.
    """

    own_bias = True

    def apply(self, inputs: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
        """Applies modReLU, and returns the pre-activation as well: see `Pointwise`."""
        return smoothed_modrelu(inputs, bias), inputs

    def kept(self, size: int, dtype: str) -> tuple[tuple[int, str], ...]:
        """Includes the pre-activation: see `Pointwise`."""
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
    """Computes `<z, g>` for each unit."""
    product = ops.cast(z, dtype) * ops.cast(gradient, dtype)
    real, imaginary = ops.split(product, 2, axis=-1)
    return real + imaginary


def _pulled(z: Tensor, gradient: Tensor, scale: Tensor, radial: Tensor) -> Tensor:
    """Computes `scale g + radial z`, in the dtype of `g`."""
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


def find(activation: Any, complex_state: bool) -> Pointwise | None:
    """Finds the activation of a cell with its derivative.

    Args:
        activation: `"modrelu"`, `"smoothed_modrelu"`, or a function.
        complex_state: Whether the units are complex.

    Returns:
        The activation with its derivative, or `None` if the derivative is unknown.

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
        slope = activation.negative_slope
        return Elementwise(activation, lambda h, g: ops.where(h > 0, g, slope * g))
    try:
        return _KNOWN.get(activation)
    except TypeError:  # A callable that cannot be hashed.
        return None
