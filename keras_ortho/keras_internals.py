"""What the package imports of Keras that is not public, here and nowhere else."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from keras.saving import custom_object_scope
from keras.src.backend import AutocastScope, get_keras_mask, rnn
from keras.src.backend.common.global_state import (
    get_global_attribute,
    set_global_attribute,
)
from keras.src.layers.layer import CallContext
from keras.src.layers.rnn.dropout_rnn_cell import DropoutRNNCell
from keras.src.models import Functional
from keras.src.trainers.compile_utils import get_loss
from keras.src.utils.tracking import no_automatic_dependency_tracking

__all__ = [
    "AutocastScope",
    "DropoutRNNCell",
    "Functional",
    "call_is_training",
    "current_call",
    "get_keras_mask",
    "get_loss",
    "knowing_also",
    "layers_within",
    "no_automatic_dependency_tracking",
    "rnn",
    "run_through",
    "within_call",
]


def current_call(cell: Any) -> Any:
    """Finds the outermost call of a layer or model, around a cell's, under way.

    Args:
        cell: The cell. A call that begins with it is not around it.

    Returns:
        The object that stands for that call, be it by `__call__` or by
        `stateless_call`, or `None` outside of any.
    """
    call = get_global_attribute("current_call_ctx")
    if call is not None and call.entry_layer is not cell:
        return call
    return get_global_attribute("stateless_scope")


def call_is_training() -> bool:
    """Tells whether the call of a layer or model that is under way is for training.

    Keras passes `training` on to every layer, but not to where a sequence begins.

    Returns:
        Whether that call, or one around it, was given `training=True`; `False`
        outside of any.
    """
    call = get_global_attribute("current_call_ctx")
    return call is not None and bool(call.get_value("training"))


def layers_within(layer: Any) -> list[Any]:
    """Lists a layer and all that it holds, at any depth.

    Args:
        layer: The layer or model.

    Returns:
        The layers, it first, each once, in the order in which they were made.
    """
    return list(layer._flatten_layers())


def knowing_also(objects: dict[str, Any]) -> custom_object_scope:
    """Makes a scope that adds to the one that is open, where Keras's replaces it.

    Args:
        objects: Classes and functions, by the names that configs have for them.

    Returns:
        The scope, a context manager.
    """
    known = get_global_attribute("custom_objects_scope_dict", {})
    return custom_object_scope({**known, **objects})


def run_through(model: Any, inputs: Any, call: Any) -> Any:
    """Runs the graph of a Sequential or functional model.

    Args:
        model: The model.
        inputs: Its inputs, tensors or symbolic ones of other shapes.
        call: What calls a layer: a function of it and of its arguments.

    Returns:
        The outputs, in the structure of the model's.
    """
    graph = getattr(model, "_functional", model)
    # By name, as Keras does.
    if isinstance(inputs, dict) and not isinstance(graph.input, dict):
        inputs = [inputs[x.name] for x in graph.inputs]
    return graph._run_through_graph(inputs, call_fn=call)


@contextmanager
def within_call(layer: Any, training: bool) -> Iterator[None]:
    """Makes sure that a call is under way, as `call_is_training` finds it.

    Keras begins none where `call`, or `stateless_call`, of a layer is called by itself.

    Args:
        layer: The layer that is called.
        training: Whether it is for training, where no call is under way.

    Yields:
        Nothing.
    """
    if get_global_attribute("current_call_ctx") is not None:
        yield
        return
    call = CallContext(entry_layer=layer)
    call.set_value("training", training)
    set_global_attribute("current_call_ctx", call)
    try:
        yield
    finally:
        set_global_attribute("current_call_ctx", None)
