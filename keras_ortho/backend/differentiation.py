"""Gradients within a compiled function: the diagnostics need both."""

from collections.abc import Callable, Sequence
from typing import Any

import keras

from keras_ortho.backend.types import Tensor


def check_backend() -> None:
    """Checks that gradients and compiled functions are at hand.

    Raises:
        RuntimeError: If the backend is neither TensorFlow nor JAX nor PyTorch.
    """
    if keras.backend.backend() not in ("tensorflow", "jax", "torch"):
        raise RuntimeError(
            "The diagnostics that differentiate need the backend TensorFlow, JAX or "
            f"PyTorch. Received: KERAS_BACKEND={keras.backend.backend()}"
        )


def in_graph(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function once for all calls of the same shapes.

    Args:
        function: Function of nested tensors, which returns some.

    Returns:
        A function with the same value.

    Raises:
        RuntimeError: If the backend is neither TensorFlow nor JAX nor PyTorch.
    """
    check_backend()
    if keras.backend.backend() == "jax":
        import jax

        return jax.jit(function)
    if keras.backend.backend() == "torch":  # Which computes at once.
        return function
    import tensorflow as tf

    compiled = tf.function(function, autograph=False)

    def call(*inputs: Any) -> Any:
        # Called itself, it would warn of many functions made of the same code.
        return compiled.get_concrete_function(*inputs)(*inputs)

    return call


def gradients(
    function: Callable[..., Tensor], inputs: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """Differentiates a function, also within a compiled one or a loop of it.

    Args:
        function: Function of tensors that returns a scalar.
        inputs: What to call it with.

    Returns:
        The gradient with respect to each input, zeros where there is none.

    Raises:
        RuntimeError: If the backend is neither TensorFlow nor JAX nor PyTorch.
    """
    check_backend()
    if keras.backend.backend() == "jax":
        import jax

        return jax.grad(function, argnums=tuple(range(len(inputs))))(*inputs)
    if keras.backend.backend() == "torch":
        import torch

        inputs = [x.detach().requires_grad_() for x in inputs]
        return torch.autograd.grad(
            function(*inputs), inputs, allow_unused=True, materialize_grads=True
        )
    import tensorflow as tf

    inputs = [tf.identity(x) for x in inputs]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        value = function(*inputs)
    zeros = tf.UnconnectedGradients.ZERO
    return tuple(tape.gradient(value, inputs, unconnected_gradients=zeros))
