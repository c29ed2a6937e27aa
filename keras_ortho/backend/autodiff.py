"""Default for other backends, which differentiate the forward function themselves.

See `keras_ortho.backend.tensorflow` for the arguments and results of each function.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from keras import ops

from keras_ortho.backend.types import Backward, Forward, Step, Tensor


def with_gradient(
    forward: Forward, backward: Backward, *, once: bool = False
) -> Callable[..., Tensor]:
    """Makes a function with the value of `forward`, without a custom gradient."""
    del backward
    return lambda *inputs: forward(*inputs)[0]


def eagerly() -> AbstractContextManager[Any]:
    """Does nothing, because these backends always compute eagerly."""
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
    """Loops over steps with `keras.ops.scan`; `collect` and `unroll` are not used."""
    return ops.scan(
        lambda carry, entries: step(carry, *entries),
        carry,
        (ops.arange(length, dtype="int32"), sequences),
        length=length,
        reverse=reverse,
    )


def stack(steps: Tensor) -> Tensor:
    """Returns what a scan has collected, which is a tensor already."""
    return steps


def slice_steps(
    sequences: Tensor, piece: tuple[int, int], start: Any, length: int
) -> Tensor:
    """Slices consecutive steps of some sequences."""
    first, count = piece
    return sequences[first : first + count, start : start + length]


def sum_over_steps(product: Callable[..., Tensor], *sequences: Tensor) -> Tensor:
    """Sums a product over all steps, as the rows of one large product."""
    return product(*(ops.reshape(x, (-1, x.shape[-1])) for x in sequences))


def batch_pieces(batch: int | None, entries: int, training: bool) -> int:
    """Returns 1: one loop runs over the whole batch."""
    return 1


def shared_out(function: Callable[..., Tensor], by_batch: Sequence[bool]) -> Callable:
    """Returns the function unchanged."""
    return function
