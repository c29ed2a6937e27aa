"""Gradients on the backend that the tests run on."""

import keras
import numpy as np
from keras import ops


def _value_and_gradients(function, points):
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


def value_and_gradient(function, point):
    """A scalar function of a tensor, and its gradient, as tensors."""
    value, (gradient,) = _value_and_gradients(function, [point])
    return value, gradient


def gradients(function, *inputs):
    """The gradient of a scalar function of tensors with respect to each of them."""
    _, found = _value_and_gradients(function, inputs)
    return [np.asarray(ops.convert_to_numpy(gradient)) for gradient in found]


def second_derivative(function, point, direction=1.0):
    """The Hessian of a scalar function of one tensor, times a direction."""

    def along(a):
        return ops.sum(value_and_gradient(function, a)[1] * direction)

    return gradients(along, point)[0]


def traced(function, **kwargs):
    """The function in the graph or program that a model holds; PyTorch has none."""
    if keras.backend.backend() == "jax":
        import jax

        return jax.jit(function)
    if keras.backend.backend() == "torch":
        return function
    import tensorflow as tf

    return tf.function(function, **kwargs)


def weight_gradients(layer, loss, *args, **kwargs):
    """The loss of a layer's output, and its gradient for each trainable weight."""
    names = [weight.name for weight in layer.trainable_variables]
    values = [v.value for v in layer.trainable_variables]
    if keras.backend.backend() == "jax":
        others = [v.value for v in layer.non_trainable_variables]

        def function(*values):
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
    return float(value), dict(zip(names, map(np.asarray, found), strict=True))
