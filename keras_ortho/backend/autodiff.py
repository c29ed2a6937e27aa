"""Any other backend: its own differentiation of the forward function.

What each function takes and returns is said in `keras_ortho.backend.tensorflow`.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from keras import ops

from keras_ortho.backend.types import Backward, Forward, Step, Tensor


def with_gradient(
    forward: Forward, backward: Backward, *, once: bool = False
) -> Callable[..., Tensor]:
    """Returns the value of `forward`, which the backend differentiates by itself."""
    del backward
    return lambda *inputs: forward(*inputs)[0]


def eagerly() -> AbstractContextManager[Any]:
    """Does nothing: these backends always compute at once."""
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
    """Loops over steps with Keras's scan; `collect` and `unroll` are not used."""
    return ops.scan(
        lambda carry, entries: step(carry, *entries),
        carry,
        (ops.arange(length, dtype="int32"), sequences),
        length=length,
        reverse=reverse,
    )


def stack(steps: Tensor) -> Tensor:
    """Returns what a scan has collected, a tensor already."""
    return steps


def slice_steps(
    sequences: Tensor, piece: tuple[int, int], start: Any, length: int
) -> Tensor:
    """Takes successive steps of some sequences."""
    first, count = piece
    return sequences[first : first + count, start : start + length]


def sum_over_steps(product: Callable[..., Tensor], *sequences: Tensor) -> Tensor:
    """Adds up a product over all steps, which are rows of one large product."""
    return product(*(ops.reshape(x, (-1, x.shape[-1])) for x in sequences))


def batch_pieces(batch: int | None, entries: int, training: bool) -> int:
    """Says 1: one loop for the whole batch."""
    return 1


def shared_out(function: Callable[..., Tensor], by_batch: Sequence[bool]) -> Callable:
    """Returns the function."""
    return function
