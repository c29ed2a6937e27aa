"""JAX: custom gradients, loops over time, and eager computation within a trace.

See `keras_ortho.backend.tensorflow` for the arguments and results of each function.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import keras
from jax.sharding import PartitionSpec

from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Backward, Forward, Step, Tensor

eagerly = jax.ensure_compile_time_eval
# In an eager call, JAX compiles each loop again, unless the function is compiled.
in_graph = compiled = jax.jit


def with_gradient(
    forward: Forward, backward: Backward, *, once: bool = False
) -> Callable[..., Tensor]:
    """Makes a function with the value of `forward` and the gradient of `backward`.

    JAX differentiates the saved values, too, so `once` is not used.
    """
    function = jax.custom_vjp(lambda *inputs: forward(*inputs)[0])
    function.defvjp(forward, lambda *args: tuple(backward(*args)))
    return lambda *inputs: function(*map(keras.ops.convert_to_tensor, inputs))


def gradients(
    function: Callable[..., Tensor], inputs: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """Computes the gradient of a function with respect to each of its inputs."""
    return jax.grad(function, argnums=tuple(range(len(inputs))))(*inputs)


def scan(
    step: Step,
    carry: tuple[Tensor, ...],
    sequences: tuple[Tensor, ...] = (),
    *,
    length: int,
    reverse: bool = False,
    **_: Any,
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


def sum_over_steps(product: Callable[..., Tensor], *sequences: Tensor) -> Tensor:
    """Sums a product over all steps, one by one: the states of all fit in no cache."""

    def step(total: Tensor, entries: tuple[Tensor, ...]) -> tuple[Tensor, None]:
        return total + product(*entries).astype(total.dtype), None

    # There may be no steps; the sum is then zero.
    entries = (jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in sequences)
    found = jax.eval_shape(product, *entries)
    start = jax.numpy.zeros(found.shape, wide_dtype(found.dtype))
    return jax.lax.scan(step, start, sequences)[0]


def shared_out(function: Callable[..., Tensor], count: int) -> Callable:
    """Makes each device compute with its share of the batch, of the first arguments.

    The gradients of the others, which all sequences share, are then summed once. By
    itself, XLA does so after each segment, or gathers the states of all sequences.
    """
    distribution = keras.distribution.distribution()
    if distribution is None:
        return function
    mesh = distribution.device_mesh.backend_mesh
    axis = distribution.batch_dim_name
    devices, divided = mesh.shape[axis], PartitionSpec(axis)

    def shared(*tensors: Tensor) -> Tensor:
        compiled = isinstance(tensors[0], jax.core.Tracer)
        if devices == 1 or tensors[0].shape[0] % devices or not compiled:
            return function(*tensors)
        others = [PartitionSpec()] * (len(tensors) - count)
        share = jax.shard_map(
            function,
            mesh=mesh,
            in_specs=(*[divided] * count, *others),
            out_specs=divided,
            axis_names={axis},  # The weights may be divided along other axes.
            check_vma=False,
        )
        return share(*map(keras.ops.convert_to_tensor, tensors))

    return shared
