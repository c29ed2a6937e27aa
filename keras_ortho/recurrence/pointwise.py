"""Activations with their derivatives, as the recurrence needs them.

Each is a class with one instance for each setting, and knows its derivative in terms
of what the recurrence keeps: the states, and where these do not tell it, the
pre-activations, which one product over all steps of a segment gives back.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import keras
from keras import ops

from keras_ortho.activations import (
    MODULUS_EPSILON,
    LeakyReLU,
    complex_modrelu,
    modulus_scale,
)
from keras_ortho.backend.types import Tensor

Factors: TypeAlias = tuple[Tensor, ...]


class Pointwise:
    """An activation that works on each unit by itself, with its derivative.

    Tensors are of a segment, `(time, batch, state_size)`, or of one step.

    Attributes:
        from_inputs: Whether the derivative needs the pre-activation.
        own_bias: Whether the bias is inside, rather than added before.
    """

    from_inputs: ClassVar[bool] = False
    own_bias: ClassVar[bool] = False

    def value(self, inputs: Tensor, bias: Tensor) -> Tensor:
        """Applies the activation.

        Args:
            inputs: Pre-activation, with the bias unless that is inside.
            bias: Tensor of shape `(n,)`.

        Returns:
            Tensor of the shape of `inputs`.
        """
        raise NotImplementedError

    def factors(self, kept: Tensor, bias: Tensor) -> Factors:
        """Prepares the derivative for all steps of a segment at once.

        Args:
            kept: The states, or the pre-activations with `from_inputs`.
            bias: Tensor of shape `(n,)`.

        Returns:
            Tensors with one entry for each step.
        """
        raise NotImplementedError

    def pull(self, factors: Factors, upstream: Tensor) -> Tensor:
        """Takes the gradient of a step from its output to its input.

        Args:
            factors: Those of the step.
            upstream: Gradient with respect to the output.

        Returns:
            Gradient with respect to the pre-activation.
        """
        return upstream * factors[0]

    def bias_terms(self, kept: Tensor, bias: Tensor, gradient: Tensor) -> Tensor:
        """Gives what the gradient of the bias is the sum of, over time and batch.

        Args:
            kept: The states, or the pre-activations with `from_inputs`.
            bias: Tensor of shape `(n,)`.
            gradient: Gradient with respect to the pre-activations.

        Returns:
            Tensor of shape `(time, batch, n)`.
        """
        return gradient


@dataclasses.dataclass(frozen=True)
class Elementwise(Pointwise):
    """A real function whose value tells its derivative, the bias added before.

    Attributes:
        function: From a tensor to its values.
        derivative: From the values to the derivatives.
    """

    function: Callable[[Tensor], Tensor]
    derivative: Callable[[Tensor], Tensor]

    def value(self, inputs: Tensor, bias: Tensor) -> Tensor:
        """Applies the function: see `Pointwise`."""
        # Some of Keras's functions give float32 on JAX, whatever they get.
        return ops.cast(self.function(inputs), inputs.dtype)

    def factors(self, kept: Tensor, bias: Tensor) -> Factors:
        """Computes the derivative from the states: see `Pointwise`."""
        return (ops.cast(self.derivative(kept), kept.dtype),)


class RealModReLU(Pointwise):
    """`sign(z) relu(|z| + b)`; where it is not zero the derivative is one."""

    own_bias = True

    def value(self, inputs: Tensor, bias: Tensor) -> Tensor:
        """Applies modReLU: see `Pointwise`."""
        sign = ops.sign(inputs)
        return sign * ops.relu(sign * inputs + bias)

    def factors(self, kept: Tensor, bias: Tensor) -> Factors:
        """Finds where the states are not zero: see `Pointwise`."""
        return (ops.abs(ops.sign(kept)),)

    def bias_terms(self, kept: Tensor, bias: Tensor, gradient: Tensor) -> Tensor:
        """The state has the sign of the pre-activation: see `Pointwise`."""
        return ops.sign(kept) * gradient


class ComplexModReLU(Pointwise):
    """`z relu(m + b) / (m + epsilon)`, on real parts before imaginary parts.

    With `s(m) = relu(m + b) / (m + epsilon)` the gradient of a unit is
    `s g + (s'(m) / m) <z, g> z`.
    """

    from_inputs = True
    own_bias = True

    def value(self, inputs: Tensor, bias: Tensor) -> Tensor:
        """Applies modReLU: see `Pointwise`."""
        return complex_modrelu(inputs, bias)

    def factors(self, kept: Tensor, bias: Tensor) -> Factors:
        """Computes `z`, `s(m)` and `s'(m) / m`: see `Pointwise`."""
        scale, modulus = modulus_scale(kept, bias)
        active = ops.cast(scale > 0, scale.dtype)
        slope = (active - scale) / (modulus + MODULUS_EPSILON)
        return (ops.cast(kept, scale.dtype), _twice(scale), slope / modulus)

    def pull(self, factors: Factors, upstream: Tensor) -> Tensor:
        """Applies the two-dimensional derivative: see `Pointwise`."""
        z, scale, slope = factors
        gradient = ops.cast(upstream, z.dtype)
        gradient = scale * gradient + _twice(slope * _inner(z, gradient)) * z
        return ops.cast(gradient, upstream.dtype)

    def bias_terms(self, kept: Tensor, bias: Tensor, gradient: Tensor) -> Tensor:
        """Takes `<z, g>` back from `<z, pull(g)>`: see `Pointwise`."""
        z, scale, slope = self.factors(kept, bias)
        _, modulus = modulus_scale(kept, bias)
        scale, _ = ops.split(scale, 2, axis=-1)
        radial = scale + slope * _inner(z, z)
        active = scale > 0
        inner = _inner(z, ops.cast(gradient, z.dtype)) / ops.where(active, radial, 1)
        terms = ops.where(active, inner / (modulus + MODULUS_EPSILON), 0)
        return ops.cast(terms, gradient.dtype)


def _twice(values: Tensor) -> Tensor:
    return ops.concatenate([values, values], axis=-1)


def _inner(a: Tensor, b: Tensor) -> Tensor:
    """The real inner product of each complex unit of two tensors."""
    real, imaginary = ops.split(a * b, 2, axis=-1)
    return real + imaginary


REAL_MODRELU = RealModReLU()
COMPLEX_MODRELU = ComplexModReLU()

_KERAS = {
    keras.activations.linear: Elementwise(ops.copy, ops.ones_like),
    keras.activations.relu: Elementwise(ops.relu, lambda h: h > 0),
    keras.activations.tanh: Elementwise(ops.tanh, lambda h: 1 - h * h),
    keras.activations.sigmoid: Elementwise(ops.sigmoid, lambda h: h * (1 - h)),
}


def _leaky_relu(activation: LeakyReLU) -> Pointwise:
    slope = activation.negative_slope
    return Elementwise(activation, lambda h: ops.where(h > 0, 1.0, slope))


def find(activation: Any, complex_state: bool) -> Pointwise | None:
    """Finds the derivative of a cell's activation.

    Args:
        activation: `"modrelu"`, or a function.
        complex_state: Whether the units are complex.

    Returns:
        The activation with its derivative, or `None` where that is not known.

    Example:
    >>> find("modrelu", complex_state=False).own_bias
    True
    """
    if activation == "modrelu":
        return COMPLEX_MODRELU if complex_state else REAL_MODRELU
    if activation is keras.activations.leaky_relu:
        activation = LeakyReLU(0.2)
    if isinstance(activation, LeakyReLU):
        return _leaky_relu(activation)
    try:
        return _KERAS.get(activation)
    except TypeError:  # A callable that cannot be hashed.
        return None
