"""One time step of a trained model, as a model without a loop.

A symbolic frame passes through the layers with a time axis of length one, which is
removed for the cell of a recurrent layer.
"""

import itertools
import re
from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
from keras import ops, tree

from keras_ortho import checks
from keras_ortho.backend.types import Tensor
from keras_ortho.deployment.causality import (
    check_call,
    check_each_frame,
    check_graph,
    check_recurrent,
    no_step,
    recurrent_layer,
)
from keras_ortho.keras_internals import Functional, run_through


class OperationNames:
    """Calls operations with symbolic tensors, under names not `taken` or `reserved`.

    `reserved` is a regular expression. Layers within others may have the same name,
    such as the cells of two Keras layers. The second is wrapped in a model with another
    name.
    """

    def __init__(self, taken: Iterable[str], reserved: str) -> None:
        self._owners: dict[str, Any] = dict.fromkeys(taken)
        self._reserved = reserved
        self._apart: dict[tuple[int, str], keras.Model] = {}

    def call(self, operation: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls a layer, or another Keras operation."""
        is_free = not re.fullmatch(self._reserved, operation.name)
        if is_free and self._owners.setdefault(operation.name, operation) is operation:
            return operation(*args, **kwargs)
        outer: list[Any] = []
        inner: list[Any] = []

        def enter(x: Any) -> Any:
            if not isinstance(x, keras.KerasTensor):
                return x
            outer.append(x)
            inner.append(keras.Input(x.shape[1:], x.shape[0], dtype=x.dtype))
            return inner[-1]

        entered = tree.map_structure(enter, (args, kwargs))
        # One model per signature: in two models, a file would store the layer twice.
        signature = (id(operation), repr(tree.map_structure(_kind, entered)))
        if signature not in self._apart:
            args, kwargs = entered
            outputs = operation(*args, **kwargs)
            model = keras.Model(inner, outputs, name=self._free_name(operation.name))
            self._owners[model.name] = self._apart[signature] = model
        return self._apart[signature](outer)

    def _free_name(self, name: str) -> str:
        names = (f"{name}_{number}" for number in itertools.count(1))
        return next(each for each in names if each not in self._owners)


def _kind(x: Any) -> Any:
    return (x.shape, x.dtype) if isinstance(x, keras.KerasTensor) else x


_STATE_NAME = r"state_\d+"


def step_model(model: Any) -> keras.Model:
    """Creates a model of one time step of a sequence model.

    The step model shares the weights of `model`. It takes one frame of each sequence
    and the states of all recurrent layers, and returns the output for that frame and
    the new states. Called on successive frames with the states that it returned, it
    computes what `model` computes for the whole sequences. If the last recurrent layer
    has `return_sequences=False`, it computes what `model` would return if the sequence
    ended at that frame. It has no loop, so it can be exported to formats that do not
    support loops.

    Every layer between the recurrent ones must be known to act on each frame
    separately: the layers of Keras and of this package that do, and element-wise
    operations, reductions and slices of `keras.ops` over other axes than time. A layer
    of your own, or a `Lambda`, needs `keras.layers.TimeDistributed` around it.

    A recurrent matrix that depends on free variables is recomputed in each call. To
    avoid this in deployment, apply `keras_ortho.freeze` first.

    Args:
        model: A built `Sequential` or functional model of recurrent layers, of Keras or
            of this package, and layers that act on each frame separately, such as
            `Dense`, `LayerNormalization`, `TimeDistributed` and `Add`. The second axis
            of its inputs is time.

    Returns:
        A functional model. Its inputs are `[x, state_0, state_1, ...]`, with the states
        in the order of the layers and `x` of shape `(batch, m)` (one for each input of
        `model`). Its outputs are `[y, new_state_0, new_state_1, ...]` (one `y` for each
        output of `model`). `keras_ortho.initial_states` returns the states to start
        with.

    Raises:
        ValueError: If `model` is not a built `Sequential` or functional model, or has
            no recurrent layer; if an input has no time axis, or one of several inputs
            has a name reserved for states, such as `"state_0"`; if a layer, which the
            message names, has no single step: `Bidirectional`, `go_backwards=True`, a
            mask, an explicit initial state, a layer that is not known to act on each
            frame separately, a recurrent layer after one with `return_sequences=False`,
            a call with `training=True`, or a recurrent layer or model that overrides
            `call`.

    Example:
    >>> rnn = ScoRNN(8, return_sequences=True)
    >>> model = keras.Sequential([keras.Input((None, 3)), rnn, keras.layers.Dense(2)])
    >>> step, states = step_model(model), initial_states(model, batch_size=4)
    >>> for frame in np.zeros((10, 4, 3)):
    ...     y, *states = step.predict_on_batch([frame, *states])
    >>> y.shape
    (4, 2)
    """
    frame = _Frame(model)
    step = keras.Model(
        [*frame.inputs, *frame.states],
        [*frame.outputs, *frame.new_states],
        name=f"{model.name}_step",
    )
    step(step.inputs)  # Keras exports only models that have been called.
    return step


def initial_states(model: Any, batch_size: int) -> list[np.ndarray]:
    """Returns the states with which a step model starts.

    Args:
        model: The sequence model, as in `keras_ortho.step_model`.
        batch_size: Number of sequences, a positive integer.

    Returns:
        List of arrays of shape `(batch_size, n)`, in the order of the step model's
        inputs: zero, or the trained initial states.

    Raises:
        ValueError: As in `keras_ortho.step_model`, or if `batch_size` is not a positive
            integer.

    Example:
    >>> rnn = ScuRNN(8, return_sequences=True)
    >>> model = keras.Sequential([keras.Input((None, 3)), rnn])
    >>> [state.shape for state in initial_states(model, batch_size=4)]
    [(4, 16)]
    """
    batch_size = checks.check_count("batch_size", batch_size)
    states = [layer.get_initial_state(batch_size) for layer in _Frame(model).recurrent]
    return [ops.convert_to_numpy(x) for x in tree.flatten(states)]


class _Frame:
    """One symbolic frame, with states, on its way through the layers of a model."""

    def __init__(self, model: Any) -> None:
        _check(model)
        self.inputs = [
            keras.Input(x.shape[2:], x.shape[0], dtype=x.dtype, name=name)
            for x, name in zip(model.inputs, _input_names(model), strict=True)
        ]
        self.states: list[Tensor] = []
        self.new_states: list[Tensor] = []
        self.recurrent: list[Any] = []
        self._batch = model.inputs[0].shape[0]
        self._names = OperationNames([x.name for x in self.inputs], _STATE_NAME)
        # Tensors without a time axis: last outputs, last states, and their results.
        self._last: list[Tensor] = []
        sequences = [ops.expand_dims(x, 1) for x in self.inputs]
        outputs = tree.flatten(run_through(model, sequences, self._call))
        self.outputs = [y if self._is_last(y) else ops.squeeze(y, 1) for y in outputs]
        if not self.recurrent:
            raise ValueError(f"`model` has no recurrent layer. Received: {model.name}")

    def _call(self, operation: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(operation, Functional | keras.Sequential):
            check_graph(operation)
            inputs = args[0] if args else kwargs["inputs"]
            return run_through(operation, inputs, self._call)
        tensors = [
            x for x in tree.flatten((args, kwargs)) if isinstance(x, keras.KerasTensor)
        ]
        last = [x for x in tensors if self._is_last(x)]
        check_call(operation, kwargs)
        recurrent = recurrent_layer(operation)
        if recurrent is not None:
            check_recurrent(operation, recurrent, args, kwargs, last)
            return self._step(operation, recurrent, tensors[0])
        if not last:
            check_each_frame(operation, args, tensors)
        elif len(last) < len(tensors):
            raise no_step(operation, "combines a last output with a sequence")
        outputs = self._one(operation, args, kwargs)
        flat = tree.flatten(outputs)
        if last:
            self._last += flat
        elif any(tuple(y.shape[1:2]) != (1,) for y in flat):
            raise no_step(operation, "does not give one frame for one frame")
        return outputs

    def _one(self, operation: Any, args: Any, kwargs: Any) -> Any:
        try:
            return self._names.call(operation, *args, **kwargs)
        except Exception as error:  # Layers raise many types.
            shapes = [
                tuple(x.shape)
                for x in tree.flatten((args, kwargs))
                if hasattr(x, "shape")
            ]
            reason = f"does not take a single frame, of shape {shapes}"
            raise no_step(operation, reason) from error

    def _step(self, operation: Any, layer: keras.layers.RNN, sequence: Tensor) -> Any:
        self.recurrent.append(operation)
        states = tree.map_structure(self._state, operation.get_initial_state(1))
        frame = ops.squeeze(sequence, 1)
        output, new_states = self._names.call(layer.cell, frame, states)
        new_states = tree.flatten(new_states)
        self.new_states += new_states
        if layer.return_sequences:
            output = ops.expand_dims(output, 1)
        else:
            self._last.append(output)
        self._last += new_states
        return [output, *new_states] if layer.return_state else output

    def _state(self, state: Tensor) -> Tensor:
        name = f"state_{len(self.states)}"
        shape, dtype = state.shape[1:], state.dtype
        self.states.append(keras.Input(shape, self._batch, dtype=dtype, name=name))
        return self.states[-1]

    def _is_last(self, x: Tensor) -> bool:
        return any(x is last for last in self._last)


def _check(model: Any) -> None:
    if not isinstance(model, Functional | keras.Sequential) or not model.built:
        raise ValueError(
            "`model` must be a Sequential or functional model, and built. Received: "
            f"{model!r}"
        )
    check_graph(model)
    for x in model.inputs:
        if len(x.shape) < 2:
            raise ValueError(
                "The second axis of each input of `model` must be time. Received: an "
                f"input of shape {tuple(x.shape)}"
            )


def _input_names(model: Any) -> list[str]:
    if len(model.inputs) == 1:
        return ["x"]
    names = [x.name for x in model.inputs]
    for name in names:
        if re.fullmatch(_STATE_NAME, name):
            raise ValueError(
                "No input of `model` may have the name of a state of the step. "
                f"Received: {name}"
            )
    return names
