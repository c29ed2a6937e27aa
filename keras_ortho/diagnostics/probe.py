"""A model run in a compiled function that observes one of its recurrent layers.

During tracing, the layer's loop over the time steps is replaced by one that computes
the same result and also answers a question about the steps. Thus the layer may be
anywhere in the model, and nothing need be known about the other layers.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import keras
import numpy as np
from keras import ops, tree

from keras_ortho.backend import gradients, in_graph, scan, stack
from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.cells import RecurrentCell
from keras_ortho.keras_internals import layers_within


def recurrent_layers(model: keras.layers.Layer) -> list[keras.layers.RNN]:
    """Returns all recurrent layers, in models and wrappers at any depth."""
    if not model.built:
        raise ValueError(
            "`model` must be built: give it an `Input`, or call it once. "
            f"Received: {model.name} with built=False"
        )
    layers = [
        layer for layer in layers_within(model) if isinstance(layer, keras.layers.RNN)
    ]
    if not layers:
        raise ValueError(
            "`model` must contain a recurrent layer, a `keras.layers.RNN` or one "
            f"derived from it. Received: {model.name} with none"
        )
    return layers


def find_layer(
    model: keras.layers.Layer, layer: str | keras.layers.RNN | None
) -> keras.layers.RNN:
    """Returns the recurrent layer, or the only one if `layer` is `None`."""
    layers = recurrent_layers(model)
    names = ", ".join(repr(each.name) for each in layers)
    chosen = [each for each in layers if layer in (None, each.name) or each is layer]
    if not chosen:
        name = layer if isinstance(layer, str) else getattr(layer, "name", layer)
        raise ValueError(
            f"`layer` must be a recurrent layer of the model: {names}. "
            f"Received: layer={name!r}"
        )
    if len(chosen) > 1:
        raise ValueError(
            f"`layer` must name one of the recurrent layers of the model: {names}. "
            f"Received: layer={layer!r}"
        )
    for outer in layers_within(model):
        if isinstance(outer, keras.layers.TimeDistributed) and any(
            inner is chosen[0] for inner in layers_within(outer)
        ):
            raise ValueError(
                "`layer` must not be inside `TimeDistributed`, which calls it several "
                f"times. Received: layer={chosen[0].name!r} in {outer.name!r}"
            )
    return chosen[0]


def entries(layer: keras.layers.RNN, state: int | None, units: slice | None) -> slice:
    """Locates a state, or some of its units, in the concatenation of all states."""
    sizes = [int(size) for size in tree.flatten(layer.cell.state_size)]
    known = range(-len(sizes), len(sizes))
    if state is not None and (isinstance(state, bool) or state not in known):
        raise ValueError(
            f"`state` must be `None` or an integer less than {len(sizes)}, the number "
            f"of states of {layer.name}. Received: state={state!r}"
        )
    if units is not None and not (isinstance(units, slice) and (units.step or 1) > 0):
        raise ValueError(
            f"`units` must be a slice with a positive step. Received: units={units!r}"
        )
    ends = list(itertools.accumulate(sizes))
    places: Any = range(ends[-1])
    if state is not None:
        places = places[ends[state] - sizes[state] : ends[state]]
    chosen = places if units is None else places[units]
    if not chosen:
        raise ValueError(
            f"`units` must select some of the {len(places)} units. Received: "
            f"units={units!r}"
        )
    return slice(chosen[0], chosen[-1] + 1, chosen.step)


class Steps:
    """A cell whose nested states are packed into one tensor of shape `(batch, s)`.

    Its methods may be called only where the recurrent layer has begun a sequence, that
    is, in its `inner_loop`. `states` are nested as in the cell, each `(batch, n)`.
    """

    def __init__(self, cell: Any, states: list[Any]) -> None:
        self.stacked: bool = isinstance(cell, keras.layers.StackedRNNCells)
        self.cells: list[Any] = list(cell.cells) if self.stacked else [cell]
        self.structure: list[Any] = states if self.stacked else [states]
        self.sizes: list[int] = [int(state.shape[-1]) for state in tree.flatten(states)]

    def pack(self, states: Any) -> Tensor:
        """Concatenates nested states."""
        return ops.concatenate(tree.flatten(states), axis=-1)

    def unpack(self, packed: Tensor) -> list[Any]:
        """Splits packed states into a list of the states of each cell."""
        ends = itertools.accumulate(self.sizes)
        parts = [
            packed[..., end - size : end]
            for size, end in zip(self.sizes, ends, strict=True)
        ]
        return tree.pack_sequence_as(self.structure, parts)

    def advance(
        self, inputs: Tensor, packed: Tensor, shift: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Returns the output and the states of a step, both after a `shift`."""
        after = []
        shifts = [None] * len(self.cells) if shift is None else self.unpack(shift)
        for cell, states, added in zip(
            self.cells, self.unpack(packed), shifts, strict=True
        ):
            nested = list(states) if tree.is_nested(states) else [states]
            inputs, new = cell(inputs, nested)
            new = tree.flatten(new)
            if added is not None:
                moved = [a + b for a, b in zip(new, tree.flatten(added), strict=True)]
                inputs = _output_of(cell, inputs, new, moved)
                new = moved
            after += new
        return inputs, self.pack(after)

    def run(
        self,
        sequences: Tensor,
        packed: Tensor,
        mask: Tensor | None,
        shift: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Runs all time steps, and returns the outputs and the states after each.

        All arguments but `packed`, the states before the first step, have a first axis
        of time. Where `mask` is `False`, a step changes neither states nor output. A
        `shift` is added to the states after each step that is not masked.
        """
        # On TensorFlow these are tensors if the sequences come from another loop.
        time, batch = ops.shape(sequences)[:2]
        size = getattr(self.cells[-1], "output_size", None)
        size = tree.flatten(self.cells[-1].state_size)[0] if size is None else size
        zeros = ops.zeros((batch, size), dtype=packed.dtype)

        def step(carry: tuple, index: Tensor, entries: tuple) -> tuple:
            before, last = carry
            inputs, *rest = entries
            keep = rest.pop(0)[:, None] if mask is not None else None
            output, after = self.advance(inputs, before, *rest)
            output = ops.cast(output, packed.dtype)
            after = ops.cast(after, packed.dtype)
            if keep is not None:
                output = ops.where(keep, output, last)
                after = ops.where(keep, after, before)
            return (after, output), (output, after)

        given = tuple(x for x in (sequences, mask, shift) if x is not None)
        _, (outputs, states) = scan(
            step,
            (packed, zeros),
            given,
            length=time,
            collect=(((batch, size), packed.dtype), (ops.shape(packed), packed.dtype)),
        )
        return (
            ops.reshape(stack(outputs), (time, batch, size)),
            ops.reshape(stack(states), (time, *ops.shape(packed))),
        )

    def jacobians(
        self, inputs: Tensor, packed: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Differentiates the new states by the states and the inputs of one step."""
        # Each sequence is repeated `size` times: one gradient yields all rows.
        (batch, size), width = ops.shape(packed), ops.shape(inputs)[-1]
        chosen = ops.tile(ops.eye(size, dtype=packed.dtype), (batch, 1))
        by_inputs, by_state = gradients(
            lambda inputs, packed: ops.sum(self.advance(inputs, packed)[1] * chosen),
            [ops.repeat(inputs, size, axis=0), ops.repeat(packed, size, axis=0)],
        )
        by_state = exact(ops.reshape(by_state, (batch, size, size)))
        by_inputs = exact(ops.reshape(by_inputs, (batch, size, width)))
        if mask is not None:
            keep, one = mask[:, None, None], ops.eye(size, dtype=by_state.dtype)
            by_state = ops.where(keep, by_state, one)
            by_inputs = ops.where(keep, by_inputs, 0)
        return by_state, by_inputs


def exact(values: Tensor) -> Tensor:
    """Casts a tensor of a narrower dtype to float32."""
    return ops.cast(values, wide_dtype(values.dtype))


def _output_of(
    cell: Any, output: Tensor, new: Sequence[Tensor], moved: Sequence[Tensor]
) -> Tensor:
    """Returns the output that corresponds to the shifted states."""
    if isinstance(cell, RecurrentCell):
        return cell.read_out(moved[0])
    for before, after in zip(new, moved, strict=True):
        if before is output:
            return after
    raise ValueError(
        "The output of the cell must be one of its states, or `read_out` of its state, "
        f"to differentiate with respect to them. Received: {cell.name} with another"
    )


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
        states = steps.unpack(after[-1])
        states = states if steps.stacked else states[0]
        return outputs[-1], ops.swapaxes(outputs, 0, 1), states


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
