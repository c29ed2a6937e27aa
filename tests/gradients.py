"""Gradients on the backend that the tests run on."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops


def _value_and_gradients(
    function: Callable[..., Any], points: Sequence[Any]
) -> tuple[Any, Sequence[Any]]:
    if keras.backend.backend() == "jax":
        import jax

        # In one program: by itself, each of its operations would be compiled.
        differentiated = jax.value_and_grad(function, argnums=tuple(range(len(points))))
        return jax.jit(differentiated)(*points)
    if keras.backend.backend() == "torch":
        import torch

        points = [torch.as_tensor(point) for point in points]
        points = [p if p.requires_grad else p.detach().requires_grad_() for p in points]
        value = function(*points)
        return value, torch.autograd.grad(value, points, create_graph=True)
    import tensorflow as tf

    points = [tf.convert_to_tensor(point) for point in points]
    with tf.GradientTape() as tape:
        tape.watch(points)
        value = function(*points)
    return value, tape.gradient(value, points)


def value_and_gradient(function: Callable[[Any], Any], point: Any) -> tuple[Any, Any]:
    """A scalar function of a tensor, and its gradient, as tensors."""
    value, (gradient,) = _value_and_gradients(function, [point])
    return value, gradient


def gradients(function: Callable[..., Any], *inputs: np.ndarray) -> list[np.ndarray]:
    """The gradient of a scalar function of tensors with respect to each of them."""
    _, found = _value_and_gradients(function, inputs)
    return [np.asarray(ops.convert_to_numpy(gradient)) for gradient in found]


def second_derivative(
    function: Callable[[Any], Any], point: np.ndarray, direction: Any = 1.0
) -> np.ndarray:
    """The Hessian of a scalar function of one tensor, times a direction."""

    def along(a: Any) -> Any:
        return ops.sum(value_and_gradient(function, a)[1] * direction)

    return gradients(along, point)[0]


def traced(function: Callable[..., Any], **kwargs: Any) -> Callable[..., Any]:
    """The function in the graph or program that a model holds; PyTorch has none."""
    if keras.backend.backend() == "jax":
        import jax

        return jax.jit(function)
    if keras.backend.backend() == "torch":
        return function
    import tensorflow as tf

    return tf.function(function, **kwargs)


def weight_gradients(
    layer: keras.Layer, loss: Callable[[Any], Any], *args: Any, **kwargs: Any
) -> tuple[float, dict[str, np.ndarray]]:
    """The loss of a layer's output, and its gradient for each trainable weight."""
    names = [weight.name for weight in layer.trainable_variables]
    values = [v.value for v in layer.trainable_variables]
    if keras.backend.backend() == "jax":
        others = [v.value for v in layer.non_trainable_variables]

        def function(*values: Any) -> Any:
            return loss(layer.stateless_call([*values], others, *args, **kwargs)[0])

        value, found = _value_and_gradients(function, values)
    elif keras.backend.backend() == "torch":
        import torch

        value = loss(layer(*args, **kwargs))
        found = torch.autograd.grad(value, values)
    else:
        import tensorflow as tf

        with tf.GradientTape() as tape:
            value = loss(layer(*args, **kwargs))
        found = tape.gradient(value, values)
    return float(value), {
        name: np.asarray(g) for name, g in zip(names, found, strict=True)
    }
