"""A model run in a compiled function that observes one of its recurrent layers.

During tracing, the layer's loop over the time steps is replaced by one that computes
the same result and also answers a question about the steps. Thus the layer may be
anywhere in the model, and nothing need be known about the other layers.
"""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import keras
import numpy as np
from keras import ops, tree

from keras_ortho.backend.differentiation import in_graph
from keras_ortho.backend.types import Tensor
from keras_ortho.diagnostics.finding import find_layer, recurrent_layers
from keras_ortho.diagnostics.steps import Steps

# A function of the steps, the inputs, the states before each step and the mask, which
# have shape `(time, batch, ...)`.
Question = Callable[[Steps, Tensor, Tensor, Tensor | None], Any]


_kept: ContextVar[dict[Any, Any] | None] = ContextVar("kept", default=None)


@contextlib.contextmanager
def keeping(made: dict[Any, Any]) -> Iterator[None]:
    """Has `compiled` keep what it makes in a dictionary, for other such blocks."""
    token = _kept.set(made)
    try:
        yield
    finally:
        _kept.reset(token)


def compiled(make: Callable[..., Any], *arguments: Any) -> Any:
    """Returns `make(*arguments)`; within `keeping`, makes it only once."""
    kept = _kept.get()
    if kept is None:
        return make(*arguments)
    key = (make, *(_key(argument) for argument in arguments))
    if key not in kept:
        # With its arguments, so that no later object has the identity of one.
        kept[key] = make(*arguments), arguments
    return kept[key][0]


def _key(value: Any) -> Any:
    if isinstance(value, slice):
        return repr(value)
    return value if isinstance(value, str | int | None) else id(value)


class Probe:
    """A compiled measurement of a model that does not change the model.

    Each call reads the current weights, states and random seeds, and discards the
    model's updates of them. The function is compiled once for data of the same shapes.
    `measure` is a function of the probe and of tensors, and returns nested tensors.
    """

    def __init__(
        self,
        model: keras.layers.Layer,
        layer: str | keras.layers.RNN | None,
        measure: Callable[..., Any],
    ) -> None:
        self.model = model
        self.layer: Any = find_layer(model, layer)
        self.measure = measure
        self._function = in_graph(self._traced)

    def __call__(self, *data: Any) -> Any:
        """Runs the measurement on nested arrays."""
        data = tree.map_structure(ops.convert_to_tensor, data)
        sizes = {x.shape[0] if x.shape else None for x in tree.flatten(data)}
        if len(sizes) != 1 or sizes & {0, None}:
            shapes = [tuple(x.shape) for x in tree.flatten(data)]
            raise ValueError(
                "`x` and `y` must contain the same number of sequences, at least one. "
                f"Received: shapes={shapes}"
            )
        values = [ops.convert_to_tensor(v) for v in self._variables()]
        return tree.map_structure(
            lambda x: np.asarray(ops.convert_to_numpy(x)), self._function(values, data)
        )

    def _variables(self) -> list[keras.Variable]:
        variables = list(self.model.variables)
        for layer in recurrent_layers(self.model):
            # `layer.variables` does not include these.
            own = tree.flatten([layer.states, getattr(layer, "has_begun", None)])
            variables += [v for v in own if v is not None]
        return list({id(v): v for v in variables}.values())

    def _traced(self, values: list[Tensor], data: tuple[Any, ...]) -> Any:
        mapping = list(zip(self._variables(), values, strict=True))
        with keras.StatelessScope(mapping):
            return self.measure(self, *data)

    def observe(
        self, x: Any, question: Question, shift: Tensor | None = None
    ) -> tuple[Any, Any]:
        """Runs the model and observes the layer. Call it only in `measure`.

        Returns the model's output and the answer of `question`. `shift` is added to the
        states after each step, as in `Steps.run`.
        """
        self._check_inputs(x)
        answers: list[Any] = []

        def loop(
            sequences: Tensor, initial_state: Any, mask: Any, training: bool = False
        ) -> tuple[Tensor, Tensor, list[Any]]:
            return self._loop(sequences, initial_state, mask, question, shift, answers)

        with _replaced_loop(self.layer, loop):
            output = self.model(x, training=False)
        if len(answers) != 1:
            raise ValueError(
                "`model` must call the recurrent layer once. "
                f"Received: {self.layer.name}, called {len(answers)} times"
            )
        return output, answers[0]

    def _check_inputs(self, x: Any) -> None:
        """Checks input shapes: Keras would accept a wrong width or fail in a layer."""
        inputs = getattr(self.model, "inputs", None) or []
        if isinstance(x, dict):
            inputs = [tensor for tensor in inputs if tensor.name in x]
            x = [x[tensor.name] for tensor in inputs]
        wanted = [tuple(t.shape) for t in inputs]
        shapes = [tuple(t.shape) for t in tree.flatten(x)]
        for shape, known_shape in zip(shapes, wanted, strict=False):
            if len(shape) == len(known_shape) and any(
                b not in (None, a) for a, b in zip(shape, known_shape, strict=True)
            ):
                raise ValueError(
                    f"`x` must have the shapes of the model's inputs, {wanted}. "
                    f"Received: x.shape={shapes}"
                )

    def _loop(
        self,
        sequences: Tensor,
        initial_state: Any,
        mask: Any,
        question: Question,
        shift: Tensor | None,
        answers: list[Any],
    ) -> tuple[Tensor, Tensor, list[Any]]:
        """Replaces the layer's `inner_loop`, and records the answer of `question`."""
        layer = self.layer
        states = (
            list(initial_state) if tree.is_nested(initial_state) else [initial_state]
        )
        if {len(s.shape) for s in tree.flatten(states)} != {2}:
            raise ValueError(
                "`layer` must have states of shape (batch, n). Received: "
                f"{layer.name} with {[tuple(s.shape) for s in tree.flatten(states)]}"
            )
        steps = Steps(layer.cell, states)
        packed = steps.pack(states)
        inputs = ops.swapaxes(sequences, 0, 1)
        masks = [m for m in tree.flatten(mask) if m is not None]
        by_time = ops.swapaxes(ops.cast(masks[0], "bool"), 0, 1) if masks else None
        if layer.go_backwards:
            inputs = ops.flip(inputs, axis=0)
            by_time = None if by_time is None else ops.flip(by_time, axis=0)
        outputs, after = steps.run(inputs, packed, by_time, shift)
        before = ops.concatenate([packed[None], after[:-1]])
        answers.append(question(steps, inputs, before, by_time))
        if by_time is not None and layer.zero_output_for_mask:
            outputs = ops.where(by_time[:, :, None], outputs, 0)
        return outputs[-1], ops.swapaxes(outputs, 0, 1), steps.states(after[-1])


@contextlib.contextmanager
def _replaced_loop(layer: Any, loop: Callable[..., Any]) -> Iterator[None]:
    """Replaces the loop of a layer within the context."""
    attributes = vars(layer)  # Bypasses Keras's tracking of attributes.
    before = {k: attributes[k] for k in ("inner_loop", "use_cudnn") if k in attributes}
    attributes["inner_loop"] = loop
    if "use_cudnn" in attributes:  # In `Bidirectional`, it would bypass the loop.
        attributes["use_cudnn"] = False
    try:
        yield
    finally:
        del attributes["inner_loop"]
        attributes.update(before)
