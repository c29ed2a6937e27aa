"""Any other backend: its own differentiation of the forward function."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from keras import ops

from keras_ortho.backend.types import Backward, Forward, Step, Tensor


def with_gradient(
    forward: Forward, backward: Backward, *, once: bool = False
) -> Callable[..., Tensor]:
    """Returns the value of `forward`, which the backend differentiates by itself.

    Args:
        forward: Function of tensors that returns one tensor and what the gradient
            needs.
        backward: Not used here.
        once: Not used here.

    Returns:
        A function of tensors that returns one tensor.
    """
    del backward
    return lambda *inputs: forward(*inputs)[0]


def eagerly() -> AbstractContextManager:
    """Does nothing: these backends always compute at once.

    Returns:
        A context manager.
    """
    return nullcontext()


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
    """Loops over steps with Keras's scan.

    Args:
        step: Function of the carry, the index and the entries of `sequences` for
            one step, which returns the next carry and what to collect.
        carry: Tensors that go from step to step.
        sequences: Tensors whose first axis is that of the steps.
        length: Number of steps.
        collect: Not used here.
        reverse: Whether to go from the last step to the first. What is collected
            stays in the order of the steps.
        unroll: Not used here.

    Returns:
        A pair of the last carry and what was collected.
    """
    return ops.scan(
        lambda carry, entries: step(carry, *entries),
        carry,
        (ops.arange(length), sequences),
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
    return sequences[first : first + count, start : start + length]


def batch_pieces() -> int:
    """Says in how many pieces to cut a batch, to loop over each by itself.

    Returns:
        1.
    """
    return 1


def tanh(inputs: Tensor) -> Tensor:
    """Computes the hyperbolic tangent.

    Args:
        inputs: Tensor of any shape.

    Returns:
        Tensor of the same shape and dtype.
    """
    return ops.tanh(inputs)
