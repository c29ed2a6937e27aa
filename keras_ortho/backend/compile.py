"""Decorators that compile a function once, or exclude it from compilation."""

import functools
from collections.abc import Callable
from typing import Any

import keras


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes JAX compile a function of tensors once for all calls with the same shapes.

    Otherwise, in an eager call, JAX compiles each loop again. TensorFlow and PyTorch
    run loops without compiling them: on other backends nothing changes.
    """
    if keras.backend.backend() != "jax":
        return function
    import jax

    return functools.wraps(function)(jax.jit(function))


def traced_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes TensorFlow trace a function with long loops once for the same shapes.

    Otherwise, in an eager call, TensorFlow runs each operation of each iteration
    separately. The function is not differentiated, so that a tape does not trace its
    gradient: use it within `with_gradient(..., once=True)`. On other backends nothing
    changes.
    """
    if keras.backend.backend() != "tensorflow":
        return function
    import tensorflow as tf

    traced = tf.function(function, autograph=False)

    @functools.wraps(function)
    def constant(*inputs: Any) -> Any:
        fixed = (tf.stop_gradient(x) if tf.is_tensor(x) else x for x in inputs)
        return traced(*fixed)

    return constant


def once_in_xla(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a second derivative within XLA on TensorFlow an error that says so.

    TensorFlow would name an operation that has no gradient. Elsewhere there are some.
    """
    if keras.backend.backend() != "tensorflow":
        return function
    import tensorflow as tf
    from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext

    from keras_ortho.backend.tensorflow import prevented

    @tf.custom_gradient
    def once(*inputs: Any) -> Any:
        return inputs, lambda *upstream: prevented(upstream)

    def call(*inputs: Any) -> Any:
        if GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph()):
            inputs = once(*map(tf.convert_to_tensor, inputs))
        return function(*inputs)

    return call


def uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes PyTorch run a function eagerly, even within a compiled function.

    PyTorch's compiler gives up on a loop over time with a custom gradient. On other
    backends nothing changes.
    """
    if keras.backend.backend() != "torch":
        return function
    import torch

    return torch.compiler.disable(function)
