"""JAX: gradients by hand, and eager computation within a trace."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax
import keras

from keras_ortho.backend.types import Backward, Forward, Tensor


def with_gradient(forward: Forward, backward: Backward) -> Callable[..., Tensor]:
    """Gives `forward` the gradient that `backward` computes.

    Args:
        forward: Function of tensors that returns one tensor and what the gradient
            needs.
        backward: Function of what was saved and of the upstream gradient, which
            returns the gradient of every input (zeros for one that has none).

    Returns:
        A function with the value of `forward` and the gradient of `backward`.
        It can be differentiated more than once, in reverse mode.
    """
    function = jax.custom_vjp(lambda *inputs: forward(*inputs)[0])

    def gradient(saved: Any, upstream: Tensor) -> tuple[Tensor, ...]:
        return tuple(backward(saved, upstream))

    function.defvjp(forward, gradient)
    return lambda *inputs: function(*map(keras.ops.convert_to_tensor, inputs))


def eagerly() -> AbstractContextManager:
    """Computes what is inside at once, also where a function is being traced.

    Returns:
        A context manager.
    """
    return jax.ensure_compile_time_eval()
