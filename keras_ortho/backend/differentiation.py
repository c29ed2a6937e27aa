"""Gradients and compiled functions, which the diagnostics combine."""

from collections.abc import Callable, Sequence
from typing import Any

import keras

from keras_ortho.backend.types import Tensor


def check_backend() -> None:
    """Checks that the backend provides gradients and compiled functions."""
    if keras.backend.backend() not in ("tensorflow", "jax", "torch"):
        raise RuntimeError(
            "Diagnostics that compute gradients require the backend TensorFlow, JAX "
            f"or PyTorch. Received: KERAS_BACKEND={keras.backend.backend()}"
        )


def in_graph(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function once for all calls with the same shapes."""
    check_backend()
    if keras.backend.backend() == "jax":
        import jax

        return jax.jit(function)
    if keras.backend.backend() == "torch":  # PyTorch computes eagerly.
        return function
    import tensorflow as tf

    compiled = tf.function(function, autograph=False)

    def call(*inputs: Any) -> Any:
        # Calling `compiled` would warn that many functions share the same code.
        return compiled.get_concrete_function(*inputs)(*inputs)

    return call


def gradients(
    function: Callable[..., Tensor], inputs: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """Computes the gradient of a function, also within compiled functions and loops."""
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
