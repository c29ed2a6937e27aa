"""TensorFlow: gradients by hand, loops over time, eager computation within a trace."""

import dataclasses
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import tensorflow as tf

from keras_ortho.backend.types import Backward, Forward, Step, Tensor

ONCE = (
    "A layer of keras_ortho can be differentiated once on TensorFlow. For second "
    "derivatives use its cell in `keras.layers.RNN`, or `unroll=True`."
)

# What a piece of a batch has at least. On two cores of an AMD EPYC a training step in
# two pieces took 0.70 to 0.98 of one in one piece from 8 sequences and 32 units on, and
# 1.09 with a single sequence in a program that is not told so. Without a gradient two
# loops were slower than one, by up to 1.4, where a step had half a million
# multiplications in all, and faster from two million on.
SEQUENCES = 4
MULTIPLICATIONS = 750_000
# What counts as the size of a batch that a program is not told.
UNKNOWN_BATCH = 64

# dL/doutput -> dL/dinput for every input
Gradient: TypeAlias = Callable[[Tensor], Sequence[Tensor]]


def with_gradient(
    forward: Forward, backward: Backward, *, once: bool = False
) -> Callable[..., Tensor]:
    """Gives `forward` the gradient that `backward` computes.

    Args:
        forward: Function of tensors that returns one tensor and what the gradient
            needs.
        backward: Function of what was saved and of the upstream gradient, which
            returns the gradient of every input (zeros for one that has none).
        once: Whether more is saved than inputs and the output. TensorFlow would
            take that for constant in a second derivative; asking for one is then
            an error. Default: `False`.

    Returns:
        A function with the value of `forward` and the gradient of `backward`.
        It can be differentiated in reverse mode, more than once unless `once`.
    """

    def gradient(saved: Any, upstream: Tensor) -> Sequence[Tensor]:
        gradients = backward(saved, upstream)
        if not once:
            return gradients
        return [tf.raw_ops.PreventGradient(input=g, message=ONCE) for g in gradients]

    @tf.custom_gradient
    def function(*inputs: Tensor) -> tuple[Tensor, Gradient]:
        output, saved = forward(*inputs)
        return output, lambda upstream: gradient(saved, upstream)

    return lambda *inputs: function(*map(tf.convert_to_tensor, inputs))


def eagerly() -> AbstractContextManager[Any]:
    """Computes what is inside at once, also where a function is being traced.

    Returns:
        A context manager.
    """
    return tf.init_scope()


@dataclasses.dataclass(frozen=True)
class _Steps:
    """A list of tensors, one a step: no copy is made of what a step yields."""

    array: Any  # `tf.TensorArray`, which has no types
    # Of one step; sizes that only the running program knows are tensors.
    shape: tuple[Any, ...]
    length: Any


def scan(
    step: Step,
    carry: tuple[Tensor, ...],
    sequences: tuple[Any, ...] = (),
    *,
    length: Any,
    collect: tuple[tuple[tuple[Any, ...], Any], ...] = (),
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[tuple[Tensor, ...], tuple[Any, ...]]:
    """Loops over steps, one op in the graph.

    Args:
        step: Function of the carry, the index and the entries of `sequences` for
            one step, which returns the next carry and what to collect.
        carry: Tensors that go from step to step.
        sequences: Tensors whose first axis is that of the steps, or what an
            earlier scan has collected.
        length: Number of steps, an int or a scalar tensor.
        collect: Shape and dtype of each tensor that is collected.
        reverse: Whether to go from the last step to the first. What is collected
            stays in the order of the steps.
        unroll: How many steps to take in one turn of the loop, at most: the largest
            number that divides the length is taken.

    Returns:
        A pair of the last carry and what was collected: see `stack`.
    """
    sources = [_source(s) for s in sequences]
    # Not cleared: of one pass there may be several gradients.
    arrays = tuple(
        tf.TensorArray(dtype, _room(length), clear_after_read=False)
        for _, dtype in collect
    )
    first = length - 1 if reverse else 0
    turn = 1
    if isinstance(length, int):
        turn = max(d for d in range(1, unroll + 1) if length % d == 0)

    def body(index: Tensor, carry: tuple, arrays: tuple) -> tuple:
        for _ in range(turn):
            entries = tuple(source.read(index) for source in sources)
            # One step after another. TensorFlow would begin with what needs no more
            # than the entries, at all steps of the turn, and the cache would lose it.
            with tf.control_dependencies([array.flow for array in arrays]):
                after, collected = step(carry, index, entries)
            for old, new in zip(carry, after, strict=True):
                new.set_shape(old.shape)
            with tf.control_dependencies(after):
                arrays = tuple(
                    array.write(index, value)
                    for array, value in zip(arrays, collected, strict=True)
                )
            with tf.control_dependencies([array.flow for array in arrays]):
                carry = tuple(map(tf.identity, after))
            index = index + (-1 if reverse else 1)
        return index, carry, arrays

    _, carry, arrays = tf.while_loop(
        lambda index, *_: index >= 0 if reverse else index < length,
        body,
        (tf.convert_to_tensor(first, tf.int32), tuple(carry), arrays),
        maximum_iterations=length,  # XLA asks for it to differentiate the loop.
    )
    return carry, tuple(
        _Steps(array, shape, length)
        for array, (shape, _) in zip(arrays, collect, strict=True)
    )


def stack(steps: _Steps) -> Tensor:
    """Makes one tensor of what a scan has collected.

    Args:
        steps: One of the values that `scan` collected.

    Returns:
        Tensor whose first axis is that of the steps.
    """
    if not tf.is_symbolic_tensor(steps.array.flow):
        return steps.array.stack()
    stacked = tf.raw_ops.TensorListStack(
        input_handle=steps.array.flow,
        # `TensorArray.stack` does not know it of a list that may have no entries.
        element_shape=tf.stack(steps.shape),
        element_dtype=steps.array.dtype,
    )
    # What is not told here, no layer that comes after can know.
    shape = (steps.length, *steps.shape)
    stacked.set_shape([size if isinstance(size, int) else None for size in shape])
    return stacked if isinstance(steps.length, int) else stacked[: steps.length]


def _source(sequence: Any) -> Any:
    """A list to read the steps of a sequence from, or of what a scan has collected."""
    if not isinstance(sequence, _Steps):
        return _unstack(sequence)
    # A Jacobian traces the gradient of what was computed at once, whose list takes no
    # index of a graph.
    if not tf.executing_eagerly() and not tf.is_symbolic_tensor(sequence.array.flow):
        return _unstack(sequence.array.stack())
    return sequence.array


def _room(length: Any) -> Any:
    """A length for lists: XLA compiles a loop that never runs, too, with its reads."""
    return length if isinstance(length, int) else tf.maximum(length, 1)


def _unstack(sequence: Tensor) -> tf.TensorArray:
    length = sequence.shape[0]
    if length is None:
        length = tf.shape(sequence)[0]
        rest = [[0, 0]] * (len(sequence.shape) - 1)
        sequence = tf.pad(sequence, [[0, _room(length) - length], *rest])
    array = tf.TensorArray(
        sequence.dtype, _room(length), element_shape=sequence.shape[1:]
    )
    return array.unstack(sequence)


def slice_steps(
    sequences: Tensor, piece: tuple[Any, Any], start: Any, length: Any
) -> Tensor:
    """Takes successive steps of some sequences.

    Args:
        sequences: Tensor of shape `(batch, time, m)`.
        piece: The first sequence and how many, ints or scalar tensors.
        start: Index of the first step, an int or a scalar tensor.
        length: How many, an int or a scalar tensor.

    Returns:
        Tensor of shape `(count, length, m)`.
    """
    first, count = piece
    units = sequences.shape[2]
    part = tf.slice(sequences, [first, start, 0], [count, length, units])
    part.set_shape([x if isinstance(x, int) else None for x in (count, length, units)])
    return part


def sum_over_steps(product: Callable[..., Tensor], *sequences: Tensor) -> Tensor:
    """Adds up a product over all steps of all sequences.

    Args:
        product: Function of as many tensors of shape `(rows, n)`, which returns the sum
            over all rows.
        *sequences: Tensors of shape `(time, batch, n)`.

    Returns:
        The sum over all steps. Here they are rows of one large product.
    """
    return product(*(tf.reshape(x, (-1, x.shape[-1])) for x in sequences))


def batch_pieces(batch: int | None, entries: int, training: bool) -> int:
    """Says in how many pieces to cut a batch, to loop over each by itself.

    On a CPU each core then keeps its part of the state, and the recurrent matrix,
    in its own cache, and none waits for another at every step.

    Args:
        batch: Number of sequences, or `None` where it is not known yet.
        entries: Number of entries of the recurrent matrix.
        training: Whether there is a gradient to compute.

    Returns:
        The number of cores, at most 4, as far as each piece has `SEQUENCES`, or without
        a gradient `MULTIPLICATIONS` a step; with a GPU 1.
    """
    if tf.config.list_logical_devices("GPU"):
        return 1
    cores = len(os.sched_getaffinity(0))
    threads = tf.config.threading.get_inter_op_parallelism_threads()
    known = UNKNOWN_BATCH if batch is None else batch
    enough = known // SEQUENCES if training else known * entries // MULTIPLICATIONS
    return max(1, min(cores, threads or cores, 4, known, enough))


def shared_out(function: Callable[..., Tensor], by_batch: Sequence[bool]) -> Callable:
    """Lets each device compute with its share of the batch, where Keras divides it.

    Args:
        function: Function of tensors that returns one whose first axis is the batch.
            It treats each sequence by itself.
        by_batch: For each of its arguments, whether the first axis is the batch.

    Returns:
        A function of the same arguments with the same value and gradients. Here it is
        `function`: TensorFlow's strategies trace it for each replica.
    """
    return function
