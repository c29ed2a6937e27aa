"""JAX: gradients by hand, loops over time, eager computation within a trace."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax
import keras

from keras_ortho.backend.types import Backward, Forward, Step, Tensor


def with_gradient(
    forward: Forward, backward: Backward, *, once: bool = False
) -> Callable[..., Tensor]:
    """Gives `forward` the gradient that `backward` computes.

    Args:
        forward: Function of tensors that returns one tensor and what the gradient
            needs.
        backward: Function of what was saved and of the upstream gradient, which
            returns the gradient of every input (zeros for one that has none).
        once: Not used here: JAX differentiates what is saved, too.

    Returns:
        A function with the value of `forward` and the gradient of `backward`.
        It can be differentiated more than once, in reverse mode.
    """
    function = jax.custom_vjp(lambda *inputs: forward(*inputs)[0])

    def gradient(saved: Any, upstream: Tensor) -> tuple[Tensor, ...]:
        return tuple(backward(saved, upstream))

    function.defvjp(forward, gradient)
    return lambda *inputs: function(*map(keras.ops.convert_to_tensor, inputs))


def eagerly() -> AbstractContextManager:
    """Computes what is inside at once, also where a function is being traced.

    Returns:
        A context manager.
    """
    return jax.ensure_compile_time_eval()


def scan(
    step: Step,
    carry: tuple[Tensor, ...],
    sequences: tuple[Tensor, ...] = (),
    *,
    length: int,
    collect: tuple[tuple[tuple[Any, ...], Any], ...] = (),
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Loops over steps, one op in the program.

    Args:
        step: Function of the carry, the index and the entries of `sequences` for
            one step, which returns the next carry and what to collect.
        carry: Tensors that go from step to step.
        sequences: Tensors whose first axis is that of the steps.
        length: Number of steps.
        collect: Not used here: JAX knows what a step returns.
        reverse: Whether to go from the last step to the first. What is collected
            stays in the order of the steps.
        unroll: Not used here: a turn of a compiled loop costs little.

    Returns:
        A pair of the last carry and what was collected.
    """
    return jax.lax.scan(
        lambda carry, entries: step(carry, *entries),
        carry,
        (jax.numpy.arange(length), sequences),
        length=length,
        reverse=reverse,
    )


def stack(steps: Tensor) -> Tensor:
    """Returns what a scan has collected, a tensor already.

    Args:
        steps: One of the values that `scan` collected.

    Returns:
        The same.
    """
    return steps


def slice_steps(
    sequences: Tensor, piece: tuple[int, int], start: Any, length: int
) -> Tensor:
    """Takes successive steps of some sequences.

    Args:
        sequences: Tensor of shape `(batch, time, m)`.
        piece: The first sequence and how many.
        start: Index of the first step, an int or a scalar tensor.
        length: How many.

    Returns:
        Tensor of shape `(count, length, m)`.
    """
    first, count = piece
    sizes = (count, length, sequences.shape[2])
    return jax.lax.dynamic_slice(sequences, (first, start, 0), sizes)


def batch_pieces() -> int:
    """Says in how many pieces to cut a batch, to loop over each by itself.

    Returns:
        1: XLA runs independent loops one after the other.
    """
    return 1


def tanh(inputs: Tensor) -> Tensor:
    """Computes the hyperbolic tangent in float64, too, as Keras's does not.

    Args:
        inputs: Tensor of any shape.

    Returns:
        Tensor of the same shape and dtype.
    """
    return jax.numpy.tanh(inputs)
