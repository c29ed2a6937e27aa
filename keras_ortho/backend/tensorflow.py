"""TensorFlow: gradients by hand, and eager computation within a trace."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TypeAlias

import tensorflow as tf

from keras_ortho.backend.types import Backward, Forward, Tensor

# dL/doutput -> dL/dinput for every input
Gradient: TypeAlias = Callable[[Tensor], Sequence[Tensor]]


def with_gradient(forward: Forward, backward: Backward) -> Callable[..., Tensor]:
    """Gives `forward` the gradient that `backward` computes.

    Args:
        forward: Function of tensors that returns one tensor and what the gradient
            needs.
        backward: Function of what was saved and of the upstream gradient, which
            returns the gradient of every input (zeros for one that has none).

    Returns:
        A function with the value of `forward` and the gradient of `backward`.
        It can be differentiated more than once, in reverse mode, where all that
        is saved are inputs and the output.
    """

    @tf.custom_gradient
    def function(
        *inputs: Tensor,
    ) -> tuple[Tensor, Callable[[Tensor], Sequence[Tensor]]]:
        output, saved = forward(*inputs)
        return output, lambda upstream: backward(saved, upstream)

    return lambda *inputs: function(*map(tf.convert_to_tensor, inputs))


def eagerly() -> AbstractContextManager:
    """Computes what is inside at once, also where a function is being traced.

    Returns:
        A context manager.
    """
    return tf.init_scope()
