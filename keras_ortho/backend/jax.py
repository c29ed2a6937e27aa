"""JAX: gradients by hand through `jax.custom_vjp`."""

from collections.abc import Sequence

import jax
import keras

from keras_ortho.backend.types import Backward, Forward, Tensor


def with_gradient(forward: Forward, backward: Backward) -> Forward:
    """Gives `forward` the gradient that `backward` computes.

    Args:
        forward: Function of tensors that returns one tensor.
        backward: Function of `(inputs, output, upstream)` that returns the
            gradient of every input (zeros for one that has none).

    Returns:
        A function with the value of `forward` and the gradient of `backward`.
        It can be differentiated more than once.
    """
    function = jax.custom_vjp(forward)

    def save(*inputs: Tensor) -> tuple[Tensor, tuple[Sequence[Tensor], Tensor]]:
        output = forward(*inputs)
        return output, (inputs, output)

    def gradient(
        saved: tuple[Sequence[Tensor], Tensor], upstream: Tensor
    ) -> tuple[Tensor, ...]:
        return tuple(backward(*saved, upstream))

    function.defvjp(save, gradient)
    return lambda *inputs: function(*map(keras.ops.convert_to_tensor, inputs))
