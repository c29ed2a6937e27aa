"""Keras's activations, in the precision of their inputs.

A few of them compute in float32 whatever they get: tanh on JAX; leaky ReLU on
TensorFlow, whose slope is a float32, and GELU there, whose root of two is one. A cell
or a layer keeps the activation that it was given, which its config names, and computes
with what `precise` makes of it.
"""

import math
from collections.abc import Callable

import keras
from keras import ops

from keras_ortho.activations import LeakyReLU
from keras_ortho.backend.elementary import tanh
from keras_ortho.backend.types import Tensor


def _gelu(inputs: Tensor) -> Tensor:
    if keras.backend.standardize_dtype(inputs.dtype) != "float64":
        # Which keeps the digits that this sum loses far below zero.
        return keras.activations.gelu(inputs)
    return 0.5 * inputs * (1.0 + ops.erf(inputs * math.sqrt(0.5)))


_PRECISE: dict[Callable[..., Tensor], Callable[[Tensor], Tensor]] = {
    keras.activations.tanh: tanh,
    keras.activations.leaky_relu: LeakyReLU(0.2),
    keras.activations.gelu: _gelu,
}


def precise(activation: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Finds a function with the values of an activation, in its inputs' precision.

    Args:
        activation: Function of a tensor, such as `keras.activations.tanh`.

    Returns:
        A function for tensors. Of an activation that is exact already, or is not one of
        Keras's, that is the activation itself.

    Example:
    >>> float(precise(keras.activations.tanh)(ops.cast(0.5, "float64")))
    0.46211715726000973
    """
    try:
        return _PRECISE.get(activation, activation)
    except TypeError:  # A callable that cannot be hashed.
        return activation
