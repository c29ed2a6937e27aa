"""Any other backend: its own differentiation of the forward function."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from keras_ortho.backend.types import Backward, Forward, Tensor


def with_gradient(forward: Forward, backward: Backward) -> Callable[..., Tensor]:
    """Returns the value of `forward`, which the backend differentiates by itself.

    Args:
        forward: Function of tensors that returns one tensor and what the gradient
            needs.
        backward: Not used here.

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
