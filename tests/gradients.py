"""Gradients on the backend that the tests run on."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np


def gradients(function: Callable[..., Any], *inputs: np.ndarray) -> list[np.ndarray]:
    """The gradient of a scalar function of tensors with respect to each of them."""
    if keras.backend.backend() == "jax":
        import jax

        # In one program: by itself, each of its operations would be compiled.
        differentiated = jax.grad(function, argnums=tuple(range(len(inputs))))
        return [np.asarray(g) for g in jax.jit(differentiated)(*inputs)]
    if keras.backend.backend() == "torch":
        import torch

        tensors = [torch.tensor(x, requires_grad=True) for x in inputs]
        return [g.numpy() for g in torch.autograd.grad(function(*tensors), tensors)]
    import tensorflow as tf

    tensors = [tf.constant(x) for x in inputs]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        value = function(*tensors)
    return [g.numpy() for g in tape.gradient(value, tensors)]


def value_and_gradient(function: Callable[[Any], Any], point: Any) -> tuple[Any, Any]:
    """A scalar function of a tensor, and its gradient, as tensors."""
    if keras.backend.backend() == "jax":
        import jax

        return jax.jit(jax.value_and_grad(function))(point)
    if keras.backend.backend() == "torch":
        import torch

        point = torch.as_tensor(point).detach().requires_grad_()
        value = function(point)
        return value, *torch.autograd.grad(value, point, create_graph=True)
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(point)
        value = function(point)
    return value, tape.gradient(value, point)


def traced(function: Callable[..., Any], **kwargs: Any) -> Callable[..., Any]:
    """The function in the graph or program that a model holds; PyTorch has none."""
    if keras.backend.backend() == "jax":
        import jax

        return jax.jit(function)
    if keras.backend.backend() == "torch":
        return function
    import tensorflow as tf

    return tf.function(function, **kwargs)


def second_derivative(
    function: Callable[[Any], Any], point: np.ndarray, direction: Any = 1.0
) -> np.ndarray:
    """The Hessian of a scalar function of one tensor, times a direction."""
    if keras.backend.backend() == "jax":
        import jax

        along = jax.grad(lambda a: (jax.grad(function)(a) * direction).sum())
        return np.asarray(jax.jit(along)(point))
    if keras.backend.backend() == "torch":
        import torch

        a = torch.tensor(point, requires_grad=True)
        (first,) = torch.autograd.grad(function(a), a, create_graph=True)
        return torch.autograd.grad((first * direction).sum(), a)[0].numpy()
    import tensorflow as tf

    a = tf.constant(point)
    with tf.GradientTape() as outer:
        outer.watch(a)
        with tf.GradientTape() as inner:
            inner.watch(a)
            value = function(a)
        along = tf.reduce_sum(inner.gradient(value, a) * direction)
    return outer.gradient(along, a).numpy()


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
        value, found = jax.jit(jax.value_and_grad(function))(values)
    elif keras.backend.backend() == "torch":
        import torch

        value = loss(layer(*args, **kwargs))
        found = torch.autograd.grad(value, [v.value for v in layer.trainable_variables])
    else:
        import tensorflow as tf

        with tf.GradientTape() as tape:
            value = loss(layer(*args, **kwargs))
        found = tape.gradient(value, [v.value for v in layer.trainable_variables])
    return float(value), {
        name: np.asarray(g) for name, g in zip(names, found, strict=True)
    }
