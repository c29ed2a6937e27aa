"""Compiling a function once, where it would be done, or run slowly, at every call."""

import functools
from collections.abc import Callable
from typing import Any

import keras


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Lets JAX compile a function with a loop once for all calls of the same shapes.

    JAX compiles the loops of a function that is not compiled itself each time that
    they are met. TensorFlow runs them as they are.

    Args:
        function: Function of tensors, of nothing else.

    Returns:
        A function with the same value.
    """
    if keras.backend.backend() != "jax":
        return function
    import jax

    return functools.wraps(function)(jax.jit(function))


def traced_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """Lets TensorFlow trace a function with long loops once for the same shapes.

    In an eager call it would otherwise take each operation of each turn by itself.
    Nor is it differentiated there, so that a tape does not trace its gradient, too: it
    is for what stands within `with_gradient(..., once=True)`. On other backends nothing
    changes.

    Args:
        function: Function of tensors and numbers.

    Returns:
        A function with the same value.
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


def uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Lets PyTorch run a function eagerly, also within what it compiles.

    Its compiler gives up at a loop over time with a gradient by hand. On other backends
    nothing changes.

    Args:
        function: Any function.

    Returns:
        A function with the same value.
    """
    if keras.backend.backend() != "torch":
        return function
    import torch

    return torch.compiler.disable(function)
