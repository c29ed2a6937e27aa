"""Gradients on the backend that the tests run on."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np


def gradients(function: Callable[..., Any], *inputs: np.ndarray) -> list[np.ndarray]:
    """The gradient of a scalar function of tensors with respect to each of them."""
    if keras.backend.backend() == "jax":
        import jax

        return [
            np.asarray(g)
            for g in jax.grad(function, argnums=tuple(range(len(inputs))))(*inputs)
        ]
    import tensorflow as tf

    tensors = [tf.constant(x) for x in inputs]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        value = function(*tensors)
    return [g.numpy() for g in tape.gradient(value, tensors)]


def weight_gradients(
    layer: keras.Layer, loss: Callable[[Any], Any], *args: Any, **kwargs: Any
) -> tuple[float, dict[str, np.ndarray]]:
    """The loss of a layer's output, and its gradient for each trainable weight."""
    names = [weight.name for weight in layer.trainable_variables]
    if keras.backend.backend() == "jax":
        import jax

        others = [v.value for v in layer.non_trainable_variables]

        def function(values: list[Any]) -> Any:
            return loss(layer.stateless_call(values, others, *args, **kwargs)[0])

        values = [v.value for v in layer.trainable_variables]
        value, found = jax.value_and_grad(function)(values)
    else:
        import tensorflow as tf

        with tf.GradientTape() as tape:
            value = loss(layer(*args, **kwargs))
        found = tape.gradient(value, [v.value for v in layer.trainable_variables])
    return float(value), {
        name: np.asarray(g) for name, g in zip(names, found, strict=True)
    }
