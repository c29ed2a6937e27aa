"""Activations, with their derivatives from what the recurrence keeps of the output."""

import dataclasses
from collections.abc import Callable
from typing import Any, TypeAlias

import keras
from keras import ops

from keras_ortho import activations
from keras_ortho.activations import twice
from keras_ortho.backend.elementary import tanh
from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor

Tensors: TypeAlias = tuple[Tensor, ...]
# For each tensor, its number of entries per sequence and its dtype.
Kinds: TypeAlias = tuple[tuple[int, str], ...]


@dataclasses.dataclass(frozen=True)
class Pointwise:
    """An activation that a step applies, with its derivative.

    Attributes:
        apply: Computes, from the pre-activation of shape `(batch, state_size)` and the
            bias of shape `(n,)`, a tuple of the output and what else `pull` needs.
        pull: Computes, from that tuple, the bias and the upstream gradient, a pair of
            gradients: with respect to the pre-activation, and to the bias for each
            sequence, of shape `(batch, n)`.
        own_bias: Whether `apply` adds the bias, or the pre-activation has it. Default:
            `False`.
        others: Computes, from the number of entries and the dtype of a state, those of
            each tensor that `apply` returns after the output. Default: none.
    """

    apply: Callable[[Tensor, Tensor], Tensors]
    pull: Callable[[Tensors, Tensor, Tensor], tuple[Tensor, Tensor]]
    own_bias: bool = False
    others: Callable[[int, str], Kinds] = lambda size, dtype: ()

    def kept(self, size: int, dtype: str) -> Kinds:
        """Gives for each tensor of `apply` its entries per sequence and its dtype.

        Args:
            size: Number of entries of the state of a sequence.
            dtype: Dtype of the state.
        """
        return (size, dtype), *self.others(size, dtype)


class Opaque(Pointwise):
    """An activation for single steps: a function, which adds the bias, alone."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        def pull(kept: Tensors, bias: Tensor, upstream: Tensor) -> Any:
            raise NotImplementedError

        super().__init__(lambda inputs, bias: (function(inputs),), pull, own_bias=True)


def _elementwise(
    function: Callable[[Tensor], Tensor], slope: Callable[[Tensor, Tensor], Tensor]
) -> Pointwise:
    """Makes an activation from a function, and its gradient in terms of its output."""

    def pull(kept: Tensors, bias: Tensor, upstream: Tensor) -> tuple[Tensor, Tensor]:
        gradient = slope(kept[0], upstream)
        return gradient, gradient

    return Pointwise(lambda inputs, bias: (function(inputs),), pull)


def _oplu(inputs: Tensor, bias: Tensor) -> Tensors:
    swapped = activations.is_unsorted(inputs)
    return activations.swap_pairs(inputs, swapped), swapped


def _oplu_gradients(
    kept: Tensors, bias: Tensor, upstream: Tensor
) -> tuple[Tensor, Tensor]:
    gradient = activations.swap_pairs(upstream, kept[1])
    return gradient, gradient


def _complex_modrelu(inputs: Tensor, bias: Tensor) -> Tensors:
    # Near `z = 0`, the output does not determine the factor.
    scale = activations.exact_scale(inputs, bias)
    return activations.scale_units(inputs, scale), scale


def _complex_modrelu_gradients(
    kept: Tensors, bias: Tensor, upstream: Tensor
) -> tuple[Tensor, Tensor]:
    """With the factor `s` and the output `h`, computes the gradient for each unit.

    It is `s g`, plus, if `h` is not zero, `(1 - s) <u, g> u` in its direction `u`.
    """
    value, scale = kept
    inner = _inner(value, upstream, scale.dtype)
    square = _inner(value, value, scale.dtype)
    smallest = activations.smallest_modulus(value.dtype) ** 2
    # Not the root of 0, whose second derivative is not finite.
    modulus = ops.sqrt(ops.maximum(square, smallest))
    # A product, which is faster than a selection.
    to_bias = ops.cast(square > smallest, scale.dtype) * inner / modulus
    radial = (1.0 - scale) * to_bias / modulus
    gradient = _pulled(value, upstream, scale, radial)
    return gradient, ops.cast(to_bias, upstream.dtype)


def _smoothed_modrelu_gradients(
    kept: Tensors, bias: Tensor, upstream: Tensor
) -> tuple[Tensor, Tensor]:
    """With the factor `s` of the modulus `m`, computes the gradient for each unit.

    For the pre-activation `z`, it is `s g + (s'(m) / m) <z, g> z`.
    """
    _, z = kept
    scale, modulus = activations.modulus_scale(z, bias)
    active = ops.cast(scale > 0, scale.dtype)
    inner = _inner(z, upstream, scale.dtype) / (modulus + activations.MODULUS_EPSILON)
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


_MODRELU = {
    ("modrelu", False): Pointwise(
        lambda inputs, bias: (activations.real_modrelu(inputs, bias),),
        lambda kept, bias, g: activations.real_modrelu_gradients(kept[0], g),
        own_bias=True,
    ),
    ("modrelu", True): Pointwise(
        _complex_modrelu,
        _complex_modrelu_gradients,
        own_bias=True,
        others=lambda size, dtype: ((size // 2, wide_dtype(dtype)),),
    ),
    ("smoothed_modrelu", True): Pointwise(
        lambda inputs, bias: (activations.smoothed_modrelu(inputs, bias), inputs),
        _smoothed_modrelu_gradients,
        own_bias=True,
        others=lambda size, dtype: ((size, dtype),),
    ),
}
_KNOWN = {
    keras.activations.linear: _elementwise(lambda z: z, lambda h, g: g),
    keras.activations.relu: _elementwise(
        ops.relu, lambda h, g: ops.where(h > 0, g, ops.zeros_like(g))
    ),
    tanh: _elementwise(tanh, lambda h, g: (1 - h * h) * g),
    keras.activations.sigmoid: _elementwise(ops.sigmoid, lambda h, g: h * (1 - h) * g),
    activations.oplu: Pointwise(
        _oplu, _oplu_gradients, others=lambda size, dtype: ((size // 2, "bool"),)
    ),
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
    if isinstance(activation, str):
        return _MODRELU[activation, complex_state]
    activation = activations.precise(activation)
    if isinstance(activation, activations.LeakyReLU):
        slope = activation.negative_slope
        return _elementwise(activation, lambda h, g: ops.where(h > 0, g, slope * g))
    return next((own for known, own in _KNOWN.items() if known is activation), None)
