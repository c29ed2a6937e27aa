"""The only module that imports Keras's private names."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import keras
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


def current_call(cell: Any) -> Any:
    """Returns the outermost running call of a layer or model that encloses a cell."""
    call = get_global_attribute("current_call_ctx")
    if call is not None and call.entry_layer is not cell:
        return call
    return get_global_attribute("stateless_scope")


def call_is_training(training: Any = None) -> bool:
    """Returns whether the running call of a layer or model is for training."""
    # Keras does not pass `training` to the functions that start a sequence, and within
    # `keras.RematScope` JAX traces it.
    if isinstance(training, bool | int):
        return bool(training)
    call = get_global_attribute("current_call_ctx")
    return call is not None and bool(call.get_value("training"))


def layers_within(layer: Any) -> list[Any]:
    """Lists a layer and all layers nested in it, at any depth."""
    return list(layer._flatten_layers())


def knowing_also(objects: dict[str, Any]) -> custom_object_scope:
    """Creates a custom object scope that extends, not replaces, the current one."""
    known = get_global_attribute("custom_objects_scope_dict", {})
    return custom_object_scope({**known, **objects})


class Substitution(keras.StatelessScope):
    """Scope in which some variables have other values, and all else is as around it.

    What a layer within it assigns or adds to the losses is carried out of the scope.
    """

    def __init__(self, layer: Any, values: Iterable[tuple[Any, Any]]) -> None:
        super().__init__(values, collect_losses=True, initialize_variables=False)
        self._layer = layer
        self._updated: dict[int, Any] = {}
        self._around = get_global_attribute("stateless_scope")
        if self._around is not None:
            own: dict[int, Any] = vars(self)["state_mapping"]
            self.state_mapping = {**self._around.state_mapping, **own}

    def add_update(self, update: tuple[Any, Any]) -> None:
        """Notes a new value of a variable."""
        super().add_update(update)
        self._updated[id(update[0])] = update[0]

    def __exit__(self, *error: Any) -> None:
        """Assigns the new values, and adds the losses."""
        super().__exit__(*error)
        if error[0] is not None:
            return
        for variable in self._updated.values():
            variable.assign(self.get_current_value(variable))
        if self._around is None:
            self._layer.add_loss(self.losses)
        elif self._around.collect_losses:  # Each layer knows its own.
            for loss in self.losses:
                self._around.add_loss(loss)


def set_aside(layer: Any, variable: Any) -> None:
    """Moves a variable of a layer to those that are never trained."""
    was_locked = layer._tracker.locked  # As Keras locks a layer that is built.
    layer._tracker.unlock()
    layer._untrack_variable(variable)
    variable.trainable = False
    layer._track_variable(variable)
    if was_locked:
        layer._tracker.lock()


def run_through(model: Any, inputs: Any, call: Any) -> Any:
    """Runs the graph of a Sequential or functional model."""
    graph = getattr(model, "_functional", model)
    # Matches inputs by name, as Keras does.
    if isinstance(inputs, dict) and not isinstance(graph.input, dict):
        inputs = [inputs[x.name] for x in graph.inputs]
    return graph._run_through_graph(inputs, call_fn=call)


@contextmanager
def within_call(layer: Any, training: bool) -> Iterator[None]:
    """Ensures that there is a running call, also if `call` is called directly."""
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
