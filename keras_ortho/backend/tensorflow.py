"""TensorFlow: gradients by hand through `tf.custom_gradient`."""

from collections.abc import Sequence

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
        It can be differentiated more than once.
    """

    @tf.custom_gradient
    def function(*inputs: Tensor) -> tuple[Tensor, Forward]:
        output = forward(*inputs)

        def gradient(upstream: Tensor) -> Sequence[Tensor]:
            return _pullback(forward, backward, inputs, output, upstream)

        return output, gradient

    return lambda *inputs: function(*map(tf.convert_to_tensor, inputs))


def _pullback(
    forward: Forward,
    backward: Backward,
    inputs: Sequence[Tensor],
    output: Tensor,
    upstream: Tensor,
) -> Sequence[Tensor]:
    """Calls `backward`, and sees to it that its result has a derivative too.

    TensorFlow does not record what happens inside a custom gradient when it runs
    eagerly, so `output` is a constant there: a second derivative that relied on
    it would silently come out wrong. It recomputes `output` instead.
    """

    @tf.custom_gradient
    def pullback(upstream: Tensor, *inputs: Tensor) -> tuple[Sequence[Tensor], Forward]:
        gradients = list(backward(inputs, output, upstream))

        def second(*higher: Tensor) -> Sequence[Tensor]:
            sources = [upstream, *inputs]
            with tf.GradientTape() as tape:
                tape.watch(sources)
                recomputed = list(backward(inputs, forward(*inputs), upstream))
            return tape.gradient(
                recomputed,
                sources,
                output_gradients=list(higher),
                unconnected_gradients=tf.UnconnectedGradients.ZERO,
            )

        return gradients, second

    return pullback(upstream, *inputs)
