"""Keras's activations, computed in the precision of their inputs.

A few of them have only float32 precision for any input: tanh on JAX; on TensorFlow
leaky ReLU, whose slope is a float32, and GELU, whose square root of two is one. A cell
or layer stores the activation that it was given, which its config contains, and
computes with the function that `precise` returns for it.
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
        # Keras's GELU keeps the digits that the sum below loses far below zero.
        return keras.activations.gelu(inputs)
    return 0.5 * inputs * (1.0 + ops.erf(inputs * math.sqrt(0.5)))


_PRECISE: dict[Callable[..., Tensor], Callable[[Tensor], Tensor]] = {
    keras.activations.tanh: tanh,
    keras.activations.leaky_relu: LeakyReLU(0.2),
    keras.activations.gelu: _gelu,
}


def precise(activation: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Returns an equivalent of an activation that has the precision of its inputs."""
    try:
        return _PRECISE.get(activation, activation)
    except TypeError:  # A callable that cannot be hashed.
        return activation
