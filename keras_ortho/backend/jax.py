"""JAX: gradients by hand, loops over time, eager computation within a trace.

What each function takes and returns is said in `keras_ortho.backend.tensorflow`.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax
import keras

from keras_ortho.backend import products
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


def product(x: Tensor, kernel: Tensor) -> Tensor:
    """Computes `x` times a kernel for all steps of all sequences.

    On several devices, each with a part of the batch, time and batch stay apart: one
    axis of both XLA would bring together, with all states, on each of them. On one
    device that axis is the quicker way.
    """
    return jax.numpy.matmul(x, kernel) if _divided() else products.product(x, kernel)


def outer_sum(x: Tensor, y: Tensor) -> Tensor:
    """Computes the sum of the outer products, with time and batch apart: `product`."""
    if not _divided():
        return products.outer_sum(x, y)
    axes = tuple(range(x.ndim - 1))
    return jax.numpy.tensordot(x, y, axes=(axes, axes))


def _divided() -> bool:
    """Whether Keras divides batches among devices."""
    distribution = keras.distribution.distribution()
    return distribution is not None and distribution.device_mesh.devices.size > 1


def batch_pieces() -> int:
    """Says 1: XLA runs independent loops one after the other."""
    return 1


def tanh(inputs: Tensor) -> Tensor:
    """Computes the hyperbolic tangent in float64, too, as Keras's does not."""
    return jax.numpy.tanh(inputs)
