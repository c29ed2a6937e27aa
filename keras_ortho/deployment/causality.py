"""Checks that each layer of a model can process one frame at a time."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops, tree

from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.deployment.overrides import method_of_ones_own
from keras_ortho.layers import CarriedState, TrainedInitialState

MIXES = "does not process each frame independently"
# Number of frames of the check. A layer that looks back further is not detected.
LOOK_BACK = 1024


def no_step(operation: Any, reason: str) -> ValueError:
    """Creates the error for a layer that has no single step.

    Args:
        operation: The layer, or another Keras operation.
        reason: Predicate that follows the name of the layer in the message.

    Returns:
        The error, for the caller to raise.
    """
    return ValueError(
        f"`model` has no single step: `{operation.name}` {reason}. "
        f"Received: {operation.name}, a `{type(operation).__name__}`"
    )


def is_tensor(x: Any) -> bool:
    """Returns whether `x` is a tensor, symbolic or not."""
    return isinstance(x, keras.KerasTensor) or ops.is_tensor(x)


def recurrent_layer(operation: Any) -> keras.layers.RNN | None:
    """Returns the recurrent layer that an operation is or wraps.

    Args:
        operation: A layer, or another Keras operation.

    Returns:
        The operation itself, the layer in a `CarriedState` or `TrainedInitialState`, or
        `None` if neither is a recurrent layer.
    """
    if isinstance(operation, CarriedState | TrainedInitialState):
        operation = operation.layer
    return operation if isinstance(operation, keras.layers.RNN) else None


def check_call(operation: Any, kwargs: dict[str, Any]) -> None:
    """Rejects cells, bidirectional layers and masks.

    Args:
        operation: The layer, or another Keras operation.
        kwargs: Keyword arguments of its call.

    Raises:
        ValueError: If the call is rejected.
    """
    if hasattr(operation, "state_size") and recurrent_layer(operation) is None:
        raise no_step(operation, "is a cell, not a layer that reads sequences")
    if isinstance(operation, keras.layers.Bidirectional):
        raise no_step(operation, "also reads the sequence from its end")
    masks = isinstance(operation, keras.layers.Masking)
    masks = masks or getattr(operation, "mask_zero", False)
    if masks or kwargs.get("mask") is not None:
        raise no_step(operation, "has a mask, which leaves frames out")


def check_graph(model: Any) -> None:
    """Rejects a model that overrides `call`, as its graph may be incomplete.

    Args:
        model: A functional or `Sequential` model.

    Raises:
        ValueError: If the model is rejected.
    """
    if method_of_ones_own(model, "call"):
        raise no_step(model, "overrides `call`")


def check_recurrent(
    operation: Any,
    layer: keras.layers.RNN,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    last: list[Any],
) -> None:
    """Rejects a recurrent layer that cannot process one frame at a time.

    Args:
        operation: The recurrent layer, or a layer that wraps it.
        layer: The recurrent layer.
        args: Positional arguments of the call of `operation`.
        kwargs: Keyword arguments of the call of `operation`.
        last: Those tensors among the arguments that come from a layer with
            `return_sequences=False`, and are not sequences.

    Raises:
        ValueError: If the layer is rejected.
    """
    if layer.go_backwards:
        raise no_step(layer, "reads the sequence from its end")
    # The state may be a tensor or an array. Keras also accepts a list of the sequence
    # and the state. The third positional argument is the mask.
    named = kwargs.get("sequences"), kwargs.get("initial_state")
    given = tree.flatten([args[:3], named])
    if sum(each is not None for each in given) > 1:
        raise no_step(layer, "is given an initial state")
    if last:
        raise no_step(layer, "follows a layer with `return_sequences=False`")
    if kwargs.get("training"):
        raise no_step(layer, "is called with `training=True`, which makes it random")
    for each in (operation, layer):
        own = method_of_ones_own(each, "call", "inner_loop")
        if own:
            raise no_step(each, f"overrides `{own}`")


def call_with_frame(
    call: Callable[..., Any], operation: Any, args: Any, kwargs: Any
) -> Any:
    """Calls a layer with a single frame.

    Args:
        call: Function that calls the layer, given the layer and its arguments.
        operation: The layer, or another Keras operation.
        args: Its positional arguments, with a time axis of length one.
        kwargs: Its keyword arguments.

    Returns:
        The output of the layer.

    Raises:
        ValueError: If the layer does not accept the frame.
    """
    try:
        return call(operation, *args, **kwargs)
    except Exception as error:
        shapes = [tuple(x.shape) for x in tree.flatten((args, kwargs)) if is_tensor(x)]
        reason = f"does not take a single frame, of shape {shapes}"
        raise no_step(operation, reason) from error


def check_pointwise(
    operations: tuple[Any, ...], given: tuple[Any, ...], outputs: tuple[Any, ...]
) -> None:
    """Checks that a layer's outputs for a long sequence are those for its frames.

    Args:
        operations: The layer, repeated for each of a few frames.
        given: Pairs of its positional and keyword arguments for each frame, with a time
            axis of length one.
        outputs: Its outputs for each frame.

    Raises:
        ValueError: If its output for a long sequence of these frames is different.
    """
    operation = operations[0]
    if isinstance(operation, keras.layers.TimeDistributed):
        return  # Pointwise by definition, and the wrapped layer may be large.
    order = np.random.default_rng(0).integers(len(given), size=LOOK_BACK)

    def join(*frames: Any) -> Any:
        # A constant of the model is the same object for each frame.
        if not is_tensor(frames[0]) or frames[1] is frames[0]:
            return frames[0]
        return ops.take(ops.concatenate(frames, axis=1), order, axis=1)

    try:
        args, kwargs = tree.map_structure(join, *given)
        wanted = tree.flatten(tree.map_structure(join, *outputs))
        received = tree.flatten(operation(*args, **kwargs))
    except Exception as error:
        raise no_step(operation, MIXES) from error
    for whole, each in zip(received, wanted, strict=True):
        if tuple(whole.shape) != tuple(each.shape) or not near(whole, each):
            raise no_step(operation, MIXES)


def near(x: Tensor, y: Tensor) -> bool:
    """Returns whether two tensors are equal up to rounding.

    The tolerance is the square root of the machine epsilon, relative to 1 plus the
    largest entry. It is well above rounding errors and well below the differences
    that a layer makes if it mixes frames, which are about as large as its outputs.

    Args:
        x: Tensor of any shape and dtype.
        y: Tensor of the same shape and dtype.

    Returns:
        Whether the tensors are equal up to rounding. Integers, booleans and entries
        that are not finite must be equal.
    """
    dtype = keras.backend.standardize_dtype(x.dtype)
    if not keras.backend.is_float_dtype(dtype):
        return bool(ops.all(x == y))
    unit = 2.0**-7 if dtype == "bfloat16" else float(np.finfo(dtype).eps)
    # Compare without rounding to a narrower dtype.
    x, y = (ops.convert_to_numpy(ops.cast(z, wide_dtype(dtype))) for z in (x, y))
    finite = np.isfinite(x) & np.isfinite(y)
    if not np.array_equal(x[~finite], y[~finite], equal_nan=True):
        return False
    x, y = x[finite], y[finite]
    size = np.abs(x).max(initial=0.0)
    return bool(np.abs(x - y).max(initial=0.0) <= unit**0.5 * (1 + size))
