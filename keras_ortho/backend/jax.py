"""JAX: custom gradients, loops over time, and eager computation within a trace.

See `keras_ortho.backend.tensorflow` for the arguments and results of each function.
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
    """Makes a function with the value of `forward` and the gradient of `backward`.

    JAX differentiates the saved values, too, so `once` is not used.
    """
    function = jax.custom_vjp(lambda *inputs: forward(*inputs)[0])

    def gradient(saved: Any, upstream: Tensor) -> tuple[Tensor, ...]:
        return tuple(backward(saved, upstream))

    function.defvjp(forward, gradient)
    return lambda *inputs: function(*map(keras.ops.convert_to_tensor, inputs))


def eagerly() -> AbstractContextManager[Any]:
    """Computes eagerly in its context, even while a function is traced."""
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
    """Loops over steps, as one operation of the program.

    JAX infers what a step returns, and an iteration of a compiled loop has little
    overhead, so `collect` and `unroll` are not used.
    """
    return jax.lax.scan(
        lambda carry, entries: step(carry, *entries),
        carry,
        (jax.numpy.arange(length), sequences),
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
    sizes = (count, length, sequences.shape[2])
    return jax.lax.dynamic_slice(sequences, (first, start, 0), sizes)


def sum_over_steps(product: Callable[..., Tensor], *sequences: Tensor) -> Tensor:
    """Sums a product over all steps, one step at a time.

    The states of one step are still in a cache when they are rearranged for a batched
    matrix product; those of all steps would not fit.
    """

    def step(total: Tensor, entries: tuple[Tensor, ...]) -> tuple[Tensor, None]:
        return total + product(*entries).astype(total.dtype), None

    # There may be no steps; the sum is then zero.
    entries = (jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in sequences)
    found = jax.eval_shape(product, *entries)
    start = jax.numpy.zeros(found.shape, wide_dtype(found.dtype))
    return jax.lax.scan(step, start, sequences)[0]


def shared_out(function: Callable[..., Tensor], by_batch: Sequence[bool]) -> Callable:
    """Makes each device compute with its share of the batch.

    If Keras divides batches among devices, the gradients of the arguments that all
    sequences share are then summed once, at the end. By itself, XLA does so after each
    segment, or gathers the states of all sequences on each device.
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
        axis_names={axis},  # The weights may be divided along other axes.
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
    """Returns 1, because XLA runs independent loops one after the other."""
    return 1
