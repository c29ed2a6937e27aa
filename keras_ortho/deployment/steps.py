"""One time step of a trained model, as a model without a loop."""

import itertools
from typing import Any

import keras
import numpy as np
from keras import ops, tree

from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check, check_count
from keras_ortho.deployment.causality import acts_on_each_frame, overrides_call
from keras_ortho.keras_internals import Functional, run_through
from keras_ortho.layers import CarriedState, TrainedInitialState


def step_model(model: Any) -> keras.Model:
    """Creates a model of one time step of a sequence model, with the same weights.

    Called on successive frames with the states that it returned, it computes what
    `model` computes for the whole sequences, without a loop. If the last recurrent
    layer has `return_sequences=False`, that is what `model` would return if the
    sequence ended at that frame. A recurrent matrix that depends on free variables is
    recomputed in each call, unless you apply `keras_ortho.freeze` first.

    Args:
        model: A built `Sequential` or functional model of recurrent layers, of Keras or
            of this package, and layers or `keras.ops` that are known to act on each
            frame separately, such as `Dense`, `LayerNormalization` and `Add`. A layer
            of your own that does, or a `Lambda`, needs `keras.layers.TimeDistributed`
            around it. The second axis of the inputs is time.

    Returns:
        A functional model. Its inputs are `[x, state_0, state_1, ...]`, with the states
        in the order of the layers and `x` of shape `(batch, m)`, one for each input of
        `model`. Its outputs are `[y, new_state_0, new_state_1, ...]`, with one `y` for
        each output of `model`. `keras_ortho.initial_states` returns the first states.

    Raises:
        ValueError: If `model` is no such model, or a layer, which the message names,
            has no single step, as with `go_backwards=True`, a mask, `training=True` or
            an explicit initial state.

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
        ValueError: As in `keras_ortho.step_model`, or if `batch_size` is invalid.

    Example:
    >>> rnn = ScuRNN(8, return_sequences=True)
    >>> model = keras.Sequential([keras.Input((None, 3)), rnn])
    >>> [state.shape for state in initial_states(model, batch_size=4)]
    [(4, 16)]
    """
    batch_size = check_count("batch_size", batch_size)
    states = [layer.get_initial_state(batch_size) for layer in _Frame(model).recurrent]
    return [ops.convert_to_numpy(x) for x in tree.flatten(states)]


def _no_step(operation: Any, reason: str) -> ValueError:
    return ValueError(
        f"`model` has no single step: `{operation.name}` {reason}. "
        f"Received: {operation.name}, of type {type(operation).__name__}"
    )


class _Frame:
    """One symbolic frame, with states, on its way through the layers of a model.

    It has a time axis of length one, removed for the cell of a recurrent layer.
    """

    def __init__(self, model: Any) -> None:
        graph = isinstance(model, Functional | keras.Sequential) and model.built
        of_sequences = graph and all(len(x.shape) > 1 for x in model.inputs)
        wanted = "be built, Sequential or functional, with inputs (batch, time, ...)"
        check(of_sequences, "model", wanted, repr(model))
        names = [x.name for x in model.inputs] if len(model.inputs) > 1 else ["x"]
        self.inputs = [
            keras.Input(x.shape[2:], x.shape[0], dtype=x.dtype, name=name)
            for x, name in zip(model.inputs, names, strict=True)
        ]
        self.states: list[Tensor] = []
        self.new_states: list[Tensor] = []
        self.recurrent: list[Any] = []
        self._batch = model.inputs[0].shape[0]
        self._owners: dict[str, Any] = dict.fromkeys(names)
        self._apart: dict[int, keras.Model] = {}
        # Tensors without a time axis, such as last outputs and states.
        self._last: list[Tensor] = []
        outputs = self._call(model, [ops.expand_dims(x, 1) for x in self.inputs])
        self.outputs = [
            y if self._is_last(y) else ops.squeeze(y, 1) for y in tree.flatten(outputs)
        ]
        check(self.recurrent, "model", "have a recurrent layer", model.name)

    def _call(self, operation: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("training"):
            raise _no_step(operation, "is called with `training=True`")
        if isinstance(operation, Functional | keras.Sequential):
            if overrides_call(operation):
                raise _no_step(operation, "overrides `call`")
            inputs = args[0] if args else kwargs["inputs"]
            return run_through(operation, inputs, self._call)
        given = [x for x in tree.flatten((args, kwargs)) if hasattr(x, "shape")]
        last = [x for x in given if self._is_last(x)]
        wrapped = isinstance(operation, CarriedState | TrainedInitialState)
        layer = operation.layer if wrapped else operation
        if isinstance(layer, keras.layers.RNN):
            if layer.go_backwards:
                raise _no_step(operation, "reads the sequence from its end")
            if len(given) > 1:
                raise _no_step(operation, "is given an initial state or a mask")
            if last:
                reason = "follows a layer with `return_sequences=False`"
                raise _no_step(operation, reason)
            if overrides_call(operation) or overrides_call(layer):
                raise _no_step(operation, "overrides `call`")
            return self._step(operation, layer, given[0])
        if last:
            if len(last) < len(given):
                raise _no_step(operation, "combines a last output with a sequence")
        elif not acts_on_each_frame(operation, args, len(given[0].shape)):
            reason = "is not known to process each frame independently; if it does, "
            reason += "wrap it in `keras.layers.TimeDistributed`"
            raise _no_step(operation, reason)
        outputs = self._apply(operation, *args, **kwargs)
        if last:
            self._last += tree.flatten(outputs)
        return outputs

    def _step(self, operation: Any, layer: keras.layers.RNN, sequence: Tensor) -> Any:
        self.recurrent.append(operation)
        states = tree.map_structure(self._state, operation.get_initial_state(1))
        output, new = self._apply(layer.cell, ops.squeeze(sequence, 1), states)
        new = tree.flatten(new)
        self.new_states += new
        self._last += new
        if layer.return_sequences:
            output = ops.expand_dims(output, 1)
        else:
            self._last.append(output)
        return [output, *new] if layer.return_state else output

    def _state(self, state: Tensor) -> Tensor:
        name = f"state_{len(self.states)}"
        shape, dtype = state.shape[1:], state.dtype
        self.states.append(keras.Input(shape, self._batch, dtype=dtype, name=name))
        return self.states[-1]

    def _is_last(self, x: Tensor) -> bool:
        return any(x is last for last in self._last)

    def _apply(self, operation: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls an operation, in a model of another name if a layer has its own."""
        if self._owners.setdefault(operation.name, operation) is operation:
            return operation(*args, **kwargs)
        flat = tree.flatten((args, kwargs))
        tensors = {id(x): x for x in flat if isinstance(x, keras.KerasTensor)}
        inputs = list(tensors.values())  # Each once, as Keras demands.
        if id(operation) not in self._apart:
            names = (f"{operation.name}_{number}" for number in itertools.count(1))
            name = next(name for name in names if name not in self._owners)
            model = keras.Model(inputs, operation(*args, **kwargs), name=name)
            self._owners[name] = self._apart[id(operation)] = model
        return self._apart[id(operation)](inputs)
