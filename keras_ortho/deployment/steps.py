"""One time step of a trained model, as a model without a loop.

A frame passes through the layers with a time axis of length one, which is removed for
the cell of a recurrent layer. The same walk over the graph is used for a symbolic
frame, which builds the model, and for a few real frames. A long sequence of these
serves to check that every other layer acts on each frame separately.
"""

import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
from keras import ops, tree

from keras_ortho import checks
from keras_ortho.backend.types import Tensor
from keras_ortho.deployment.causality import (
    MIXES,
    call_with_frame,
    check_call,
    check_graph,
    check_pointwise,
    check_recurrent,
    is_tensor,
    no_step,
    recurrent_layer,
)
from keras_ortho.deployment.operation_names import OperationNames
from keras_ortho.keras_internals import Functional, run_through

# Number of distinct frames in the sequence of the check.
_FRAMES = 3
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

    `step_model` checks with 1024 frames that every layer that is not recurrent acts on
    each frame separately. A layer that looks back further is not detected, nor is one
    whose output for those frames is not finite.

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
            mask, an explicit initial state, a layer that mixes frames, a recurrent
            layer after one with `return_sequences=False` or called with
            `training=True`, or a recurrent layer or model that overrides `call`.

    Example:
    >>> rnn = ScoRNN(8, return_sequences=True)
    >>> model = keras.Sequential([keras.Input((None, 3)), rnn, keras.layers.Dense(2)])
    >>> step, states = step_model(model), initial_states(model, batch_size=4)
    >>> for frame in np.zeros((10, 4, 3)):
    ...     y, *states = step.predict_on_batch([frame, *states])
    >>> y.shape
    (4, 2)
    """
    _check_causal(model)
    inputs = [
        keras.Input(x.shape[2:], x.shape[0], dtype=x.dtype, name=name)
        for x, name in zip(model.inputs, _input_names(model), strict=True)
    ]
    batch = model.inputs[0].shape[0]
    states: list[Tensor] = []

    def state_input(state: Tensor) -> Tensor:
        name = f"state_{len(states)}"
        states.append(keras.Input(state.shape[1:], batch, dtype=state.dtype, name=name))
        return states[-1]

    frame = _Frame(
        lambda layer: tree.map_structure(state_input, layer.get_initial_state(1)),
        OperationNames([x.name for x in inputs], _STATE_NAME),
    )
    outputs = frame.through(model, inputs)
    step = keras.Model(
        [*inputs, *states], [*outputs, *frame.new_states], name=f"{model.name}_step"
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
    states = [layer.get_initial_state(batch_size) for layer in _check_causal(model)]
    return [ops.convert_to_numpy(x) for x in tree.flatten(states)]


class _Frame:
    """The pass of one frame through the layers of a model.

    Args:
        states: Function that returns the states of a recurrent layer.
        names: Calls the operations if the frame is symbolic. Default: `None`, for a
            real frame.
    """

    def __init__(
        self, states: Callable[[Any], Any], names: OperationNames | None = None
    ) -> None:
        self.states = states
        self._apply = names.call if names else operator.call
        self.new_states: list[Tensor] = []
        # Calls of layers that are not recurrent: layer, arguments and outputs.
        self.calls: list[tuple[Any, Any, Any]] = []
        # Tensors without a time axis: last outputs, last states, and their results.
        self._last: list[Tensor] = []

    def through(self, model: Any, inputs: list[Tensor]) -> list[Tensor]:
        """Passes the frame through a model and returns its outputs."""
        inputs = [ops.expand_dims(x, 1) for x in inputs]
        outputs = tree.flatten(run_through(model, inputs, self._call))
        return [y if self._is_last(y) else ops.squeeze(y, 1) for y in outputs]

    def _call(self, operation: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(operation, Functional | keras.Sequential):
            check_graph(operation)
            inputs = args[0] if args else kwargs["inputs"]
            return run_through(operation, inputs, self._call)
        tensors = [x for x in tree.flatten((args, kwargs)) if is_tensor(x)]
        last = [x for x in tensors if self._is_last(x)]
        check_call(operation, kwargs)
        recurrent = recurrent_layer(operation)
        if recurrent is not None:
            check_recurrent(operation, recurrent, args, kwargs, last)
            return self._step(operation, recurrent, tensors[0])
        outputs = call_with_frame(self._apply, operation, args, kwargs)
        flat = tree.flatten(outputs)
        if last:
            if len(last) < len(tensors):
                raise no_step(operation, "combines a last output with a sequence")
            self._last += flat
        elif any(tuple(y.shape[1:2]) != (1,) for y in flat):
            raise no_step(operation, MIXES)
        else:
            self.calls.append((operation, (args, kwargs), outputs))
        return outputs

    def _step(self, operation: Any, layer: keras.layers.RNN, sequence: Tensor) -> Any:
        output, new_states = self._apply(
            layer.cell, ops.squeeze(sequence, 1), self.states(operation)
        )
        new_states = tree.flatten(new_states)
        self.new_states += new_states
        if layer.return_sequences:
            output = ops.expand_dims(output, 1)
        else:
            self._last.append(output)
        self._last += new_states
        return [output, *new_states] if layer.return_state else output

    def _is_last(self, x: Tensor) -> bool:
        return any(x is last for last in self._last)


def _check_causal(model: Any) -> list[Any]:
    """Checks a model with a few frames and returns its recurrent layers in order."""
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
    recurrent, frames = _walk(model, lambda x: x)
    if any(map(_has_nan, frames)):  # As from a logarithm or a root.
        recurrent, frames = _walk(model, np.abs)
    if not recurrent:
        raise ValueError(f"`model` has no recurrent layer. Received: {model.name}")
    for calls in zip(*(frame.calls for frame in frames), strict=True):
        check_pointwise(*zip(*calls, strict=True))
    return recurrent


def _walk(
    model: Any, signs: Callable[[np.ndarray], np.ndarray]
) -> tuple[list[Any], list[_Frame]]:
    """Passes random frames through a model, each with the states after the last."""
    batch_size = model.inputs[0].shape[0] or 2
    random = np.random.default_rng(0)
    recurrent: list[Any] = []
    states: Iterator[Tensor] = iter(())

    def first(layer: Any) -> Any:
        recurrent.append(layer)
        return layer.get_initial_state(batch_size)

    def next_states(layer: Any) -> Any:
        return tree.map_structure(lambda _: next(states), layer.get_initial_state(1))

    frames = []
    for number in range(_FRAMES):
        frame = _Frame(next_states if number else first)
        inputs = [_random_frame(x, batch_size, random) for x in model.inputs]
        frame.through(
            model,
            [
                ops.convert_to_tensor(signs(values), dtype=x.dtype)
                for x, values in zip(model.inputs, inputs, strict=True)
            ],
        )
        states = iter(frame.new_states)
        frames.append(frame)
    return recurrent, frames


def _random_frame(
    x: keras.KerasTensor, batch_size: int, random: np.random.Generator
) -> np.ndarray:
    shape = (batch_size, *x.shape[2:])
    if keras.backend.is_float_dtype(x.dtype):
        return random.normal(size=shape)
    return random.integers(0, 2, size=shape)


def _has_nan(frame: _Frame) -> bool:
    """Returns whether a layer that is not recurrent has returned NaN."""
    return any(
        bool(ops.any(ops.isnan(x)))
        for x in tree.flatten([outputs for _, _, outputs in frame.calls])
        if keras.backend.is_float_dtype(keras.backend.standardize_dtype(x.dtype))
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
