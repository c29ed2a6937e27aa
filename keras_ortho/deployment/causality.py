"""What has a single step, and what has none: each layer of a model is asked."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops, tree

from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.deployment.overrides import method_of_ones_own
from keras_ortho.layers import CarriedState, TrainedInitialState

MIXES = "does not work on each frame by itself"
# The frames of the check: what looks back further than these is not found out.
LOOK_BACK = 1024


def no_step(operation: Any, reason: str) -> ValueError:
    """Makes the error that names a layer without a step.

    Args:
        operation: The layer, or an operation of Keras.
        reason: What it does, to follow its name.

    Returns:
        The error, to be raised.
    """
    return ValueError(
        f"`model` has no single step: `{operation.name}` {reason}. "
        f"Received: {operation.name}, a `{type(operation).__name__}`"
    )


def is_tensor(x: Any) -> bool:
    """Whether something is a tensor, be it a symbolic one."""
    return isinstance(x, keras.KerasTensor) or ops.is_tensor(x)


def recurrent_layer(operation: Any) -> keras.layers.RNN | None:
    """Finds the recurrent layer that an operation is, or runs from other states.

    Args:
        operation: A layer or an operation of Keras.

    Returns:
        The layer, whose cell makes the step, or `None`.
    """
    if isinstance(operation, CarriedState | TrainedInitialState):
        operation = operation.layer
    return operation if isinstance(operation, keras.layers.RNN) else None


def check_call(operation: Any, kwargs: dict[str, Any]) -> None:
    """Refuses cells, layers that look ahead, and masks.

    Args:
        operation: The layer, or an operation of Keras.
        kwargs: What it is called with by name.

    Raises:
        ValueError: If it is refused.
    """
    if hasattr(operation, "state_size") and recurrent_layer(operation) is None:
        raise no_step(operation, "is the cell of one step, not a layer of sequences")
    if isinstance(operation, keras.layers.Bidirectional):
        raise no_step(operation, "reads the sequence from its end, too")
    masks = isinstance(operation, keras.layers.Masking)
    masks = masks or getattr(operation, "mask_zero", False)
    if masks or kwargs.get("mask") is not None:
        raise no_step(operation, "has a mask: frames that do not count are left out")


def check_graph(model: Any) -> None:
    """Refuses a model that does more than what its graph says.

    Args:
        model: A functional or `Sequential` model.

    Raises:
        ValueError: If it is refused.
    """
    if method_of_ones_own(model, "call"):
        raise no_step(model, "has a `call` of its own around its layers")


def check_recurrent(
    operation: Any,
    layer: keras.layers.RNN,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    last: list[Any],
) -> None:
    """Refuses a recurrent layer that no frame can be given to by itself.

    Args:
        operation: The layer, or one that runs it from other states.
        layer: The layer.
        args: What it is called with by position.
        kwargs: What it is called with by name.
        last: Those of them that come from a last output, and are no sequence.

    Raises:
        ValueError: If it is refused.
    """
    if layer.go_backwards:
        raise no_step(layer, "reads the sequence from its end")
    # Be it a tensor or an array. Keras also takes a list of the sequence and it. Behind
    # it, by position, comes a mask.
    named = kwargs.get("sequences"), kwargs.get("initial_state")
    given = tree.flatten([args[:3], named])
    if sum(each is not None for each in given) > 1:
        raise no_step(layer, "begins with a state that it is given")
    if last:
        raise no_step(layer, "comes after a layer with `return_sequences=False`")
    if kwargs.get("training"):
        raise no_step(layer, "is called with `training=True`, at random")
    for each in (operation, layer):
        own = method_of_ones_own(each, "call", "inner_loop")
        if own:
            raise no_step(each, f"has a `{own}` of its own around its cell")


def call_with_frame(
    call: Callable[..., Any], operation: Any, args: Any, kwargs: Any
) -> Any:
    """Calls a layer with a single frame.

    Args:
        call: Function of the layer and its arguments, which calls it.
        operation: The layer, or an operation of Keras.
        args: Its arguments, with a time axis of length one.
        kwargs: Those that it is given by name.

    Returns:
        What it gives.

    Raises:
        ValueError: If it does not take the frame.
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
    """Holds a layer, called with a long sequence, to what it gave for each frame.

    Args:
        operations: The layer, once for each of a few frames.
        given: Its arguments for each frame, with a time axis of length one.
        outputs: What it gave for each.

    Raises:
        ValueError: If it gives something else for a long sequence of these frames.
    """
    operation = operations[0]
    if isinstance(operation, keras.layers.TimeDistributed):
        return  # As its name says; the layer in it may be a large one.
    order = np.random.default_rng(0).integers(len(given), size=LOOK_BACK)

    def join(*frames: Any) -> Any:
        # A constant of the model's is the same one each time.
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
    """Whether two tensors are equal but for rounding.

    What mixes frames is off by about its own size, and rounding by some units of the
    last place: the square root of such a unit is far from both.

    Args:
        x: Tensor of any shape and dtype.
        y: Tensor of the same shape and dtype.

    Returns:
        Whether they are; of integers and booleans whether they are equal. What is not
        finite must be the same in both.
    """
    dtype = keras.backend.standardize_dtype(x.dtype)
    if not keras.backend.is_float_dtype(dtype):
        return bool(ops.all(x == y))
    unit = 2.0**-7 if dtype == "bfloat16" else float(np.finfo(dtype).eps)
    # Not fewer bits than they have: two neighbors would be far apart then.
    x, y = (ops.convert_to_numpy(ops.cast(z, wide_dtype(dtype))) for z in (x, y))
    finite = np.isfinite(x) & np.isfinite(y)
    if not np.array_equal(x[~finite], y[~finite], equal_nan=True):
        return False
    x, y = x[finite], y[finite]
    size = np.abs(x).max(initial=0.0)
    return bool(np.abs(x - y).max(initial=0.0) <= unit**0.5 * (1 + size))
