"""JAX: gradients by hand, loops over time, eager computation within a trace.

What each function takes and returns is said in `keras_ortho.backend.tensorflow`.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import jax
import keras
from jax.sharding import PartitionSpec

from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Backward, Forward, Step, Tensor


def with_gradient(
    forward: Forward, backward: Backward, *, once: bool = False
) -> Callable[..., Tensor]:
    """Gives `forward` the gradient that `backward` computes.

    JAX differentiates what is saved, too: `once` is not used.
    """
    function = jax.custom_vjp(lambda *inputs: forward(*inputs)[0])

    def gradient(saved: Any, upstream: Tensor) -> tuple[Tensor, ...]:
        return tuple(backward(saved, upstream))

    function.defvjp(forward, gradient)
    return lambda *inputs: function(*map(keras.ops.convert_to_tensor, inputs))


def eagerly() -> AbstractContextManager[Any]:
    """Computes what is inside at once, also where a function is being traced."""
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

    JAX knows what a step returns, and a turn of a compiled loop costs little: `collect`
    and `unroll` are not used.
    """
    return jax.lax.scan(
        lambda carry, entries: step(carry, *entries),
        carry,
        (jax.numpy.arange(length), sequences),
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
    sizes = (count, length, sequences.shape[2])
    return jax.lax.dynamic_slice(sequences, (first, start, 0), sizes)


def sum_over_steps(product: Callable[..., Tensor], *sequences: Tensor) -> Tensor:
    """Adds up a product over all steps, one after the other.

    A step's part of the states is still in a cache when it is rearranged for a product
    of several matrices, as that of all steps would not be.
    """

    def step(total: Tensor, entries: tuple[Tensor, ...]) -> tuple[Tensor, None]:
        return total + product(*entries).astype(total.dtype), None

    # Of a sequence there may be no steps, of which the sum is zero.
    entries = (jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in sequences)
    found = jax.eval_shape(product, *entries)
    start = jax.numpy.zeros(found.shape, wide_dtype(found.dtype))
    return jax.lax.scan(step, start, sequences)[0]


def shared_out(function: Callable[..., Tensor], by_batch: Sequence[bool]) -> Callable:
    """Lets each device compute with its share of the batch.

    Where Keras divides batches among devices, the gradients of what is the same for all
    sequences are then added up once, at the end. Left to itself, XLA does so after
    each segment, or brings the states of all sequences together on each device.
    """
    distribution = keras.distribution.distribution()
    if distribution is None:
        return function
    mesh = distribution.device_mesh.backend_mesh
    axis = distribution.batch_dim_name
    devices, divided = mesh.shape[axis], PartitionSpec(axis)
    share = jax.shard_map(
        function,
        mesh=mesh,
        in_specs=tuple(divided if each else PartitionSpec() for each in by_batch),
        out_specs=divided,
        axis_names={axis},  # Others may divide the weights.
        check_vma=False,
    )

    def shared(*tensors: Tensor) -> Tensor:
        first = tensors[by_batch.index(True)]
        compiled = isinstance(first, jax.core.Tracer)
        if devices == 1 or first.shape[0] % devices or not compiled:
            return function(*tensors)
        return share(*map(keras.ops.convert_to_tensor, tensors))

    return shared


def batch_pieces(batch: int | None, entries: int, training: bool) -> int:
    """Says 1: XLA runs independent loops one after the other."""
    return 1
