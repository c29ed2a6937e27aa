"""TensorFlow: custom gradients, loops over time, and eager computation in a trace."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from keras_ortho.backend.types import Backward, Forward, Step, Tensor
from keras_ortho.executors import processor_count

ONCE = (
    "On TensorFlow, a layer of keras_ortho has first derivatives only. For second "
    "derivatives, use its cell in `keras.layers.RNN`, or `unroll=True`. There are none "
    "with respect to what `ENRNN` normalizes by the spectral radius."
)

# Smallest size of a piece of a batch: number of sequences in training, multiplications
# per step without a gradient. On two cores of an AMD EPYC, training in two pieces took
# 0.70 to 0.98 times as long as in one for 8 or more sequences and 32 or more units.
# Without a gradient, two loops were faster from two million multiplications on.
SEQUENCES = 4
MULTIPLICATIONS = 750_000
# Assumed size of a batch whose size is unknown while the program is traced.
UNKNOWN_BATCH = 64

# A context that computes eagerly, even while a function is traced.
eagerly = tf.init_scope


def with_gradient(
    forward: Forward, backward: Backward, *, once: bool = False
) -> Callable[..., Tensor]:
    """Makes a function with the value of `forward` and the gradient of `backward`.

    If it is differentiated `once` only, the derivative of its gradient is an error.
    """

    @tf.custom_gradient
    def function(*inputs: Tensor) -> tuple[Tensor, Callable]:
        output, saved = forward(*inputs)

        def gradient(upstream: Tensor) -> Sequence[Tensor]:
            found = backward(saved, upstream)
            if not once:
                return found
            return [tf.raw_ops.PreventGradient(input=g, message=ONCE) for g in found]

        return output, gradient

    return lambda *inputs: function(*map(tf.convert_to_tensor, inputs))


def gradients(
    function: Callable[..., Tensor], inputs: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """Computes the gradient of a function, also within compiled functions and loops."""
    inputs = [tf.identity(x) for x in inputs]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        value = function(*inputs)
    zeros = tf.UnconnectedGradients.ZERO
    return tuple(tape.gradient(value, inputs, unconnected_gradients=zeros))


def in_graph(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function once for all calls with the same shapes."""
    traced = tf.function(function, autograph=False)
    # Calling `traced` would warn that many functions share the same code.
    return lambda *inputs: traced.get_concrete_function(*inputs)(*inputs)


@dataclasses.dataclass(frozen=True)
class _Steps:
    """A list with one tensor per step, stored without copying."""

    array: Any  # A `tf.TensorArray`, which has no type annotations.
    # Shape of one step. Sizes that are unknown while the program is traced are tensors.
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
    """Loops over steps, as one operation of the graph.

    `collect` holds the shape and the dtype of each tensor that a step returns beside
    the carry. An iteration runs up to `unroll` steps.
    """
    sources = [_source(s) for s in sequences]
    # Not cleared after reading, because several gradients may read one forward pass.
    arrays = tuple(
        tf.TensorArray(dtype, _room(length), clear_after_read=False)
        for _, dtype in collect
    )
    turn = 1
    if isinstance(length, int):
        turn = max(d for d in range(1, unroll + 1) if length % d == 0)

    def body(index: Tensor, carry: tuple, arrays: tuple) -> tuple:
        for _ in range(turn):
            entries = tuple(source.read(index) for source in sources)
            # Run the steps one after the other. TensorFlow would first run, for all
            # steps of an iteration, the operations that need only the entries, and
            # their results would drop out of the cache.
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

    first = tf.convert_to_tensor(length - 1 if reverse else 0, tf.int32)
    _, carry, arrays = tf.while_loop(
        lambda index, *_: index >= 0 if reverse else index < length,
        body,
        (first, tuple(carry), arrays),
        maximum_iterations=length,  # XLA needs it to differentiate the loop.
    )
    return carry, tuple(
        _Steps(array, shape, length)
        for array, (shape, _) in zip(arrays, collect, strict=True)
    )


def stack(steps: _Steps) -> Tensor:
    """Stacks the values that a scan has collected into one tensor."""
    if not tf.is_symbolic_tensor(steps.array.flow):
        return steps.array.stack()
    stacked = tf.raw_ops.TensorListStack(
        input_handle=steps.array.flow,
        # `TensorArray.stack` does not know it for a list that may be empty.
        element_shape=tf.stack(steps.shape),
        element_dtype=steps.array.dtype,
    )
    # The layers that follow need the static shape.
    stacked.set_shape([_known(size) for size in (steps.length, *steps.shape)])
    return stacked if isinstance(steps.length, int) else stacked[: steps.length]


def _known(size: Any) -> int | None:
    return size if isinstance(size, int) else None


def _source(sequence: Any) -> Any:
    """Returns a list of the steps of a sequence or of an earlier scan, for reading."""
    if not isinstance(sequence, _Steps):
        return _unstack(sequence)
    # A Jacobian traces the gradient of an eager computation. An eager list does not
    # accept a symbolic index.
    if not tf.executing_eagerly() and not tf.is_symbolic_tensor(sequence.array.flow):
        return _unstack(sequence.array.stack())
    return sequence.array


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


def _room(length: Any) -> Any:
    """Returns a positive list length: XLA compiles reads in loops that never run."""
    return length if isinstance(length, int) else tf.maximum(length, 1)


def batch_pieces(batch: int | None, entries: int, training: bool) -> int:
    """Returns the number of pieces of a batch that are run in separate loops.

    On a CPU, each core then keeps its part of the state, and the recurrent matrix, in
    its own cache, and the cores do not wait for each other at every step.
    """
    if tf.config.list_logical_devices("GPU"):
        return 1
    cores = processor_count()
    threads = tf.config.threading.get_inter_op_parallelism_threads()
    known = UNKNOWN_BATCH if batch is None else batch
    enough = known // SEQUENCES if training else known * entries // MULTIPLICATIONS
    return max(1, min(cores, threads or cores, 4, known, enough))
