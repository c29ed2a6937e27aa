"""Compiling a function once, where its backend would do so at every call."""

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
