"""TensorFlow: gradients by hand, and eager computation within a trace."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

import tensorflow as tf

from keras_ortho.backend.types import Backward, Forward, Tensor


def with_gradient(forward: Forward, backward: Backward) -> Forward:
    """Gives `forward` the gradient that `backward` computes.

    Args:
        forward: Function of tensors that returns one tensor.
        backward: Function of `(inputs, output, upstream)` that returns the
            gradient of every input (zeros for one that has none).

    Returns:
        A function with the value of `forward` and the gradient of `backward`.
        It can be differentiated more than once, in reverse mode.
    """

    @tf.custom_gradient
    def function(*inputs: Tensor) -> tuple[Tensor, Forward]:
        output = forward(*inputs)

        def gradient(upstream: Tensor) -> Sequence[Tensor]:
            return backward(inputs, output, upstream)

        return output, gradient

    return lambda *inputs: function(*map(tf.convert_to_tensor, inputs))


def eagerly() -> AbstractContextManager:
    """Computes what is inside at once, also where a function is being traced.

    Returns:
        A context manager.
    """
    return tf.init_scope()
