"""Decorators that compile a function once, or exclude it from compilation."""

import functools
from collections.abc import Callable
from typing import Any

import keras


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes JAX compile a function with loops once for all calls with the same shapes.

    Otherwise, in an eager call, JAX compiles each loop again. TensorFlow and PyTorch
    run loops without compiling them: on other backends nothing changes.

    Args:
        function: Function of tensors only.

    Returns:
        A function with the same value.
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
    """Makes PyTorch run a function eagerly, even within a compiled function.

    PyTorch's compiler gives up on a loop over time with a custom gradient. On other
    backends nothing changes.

    Args:
        function: Any function.

    Returns:
        A function with the same value.
    """
    if keras.backend.backend() != "torch":
        return function
    import torch

    return torch.compiler.disable(function)
