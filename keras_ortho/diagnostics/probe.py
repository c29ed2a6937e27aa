"""A model run with one of its layers' loops replaced by one that is observed."""

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

import keras
import numpy as np
from keras import ops, tree

from keras_ortho.backend import gradients, in_graph, scan, stack
from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.cells import RecurrentCell
from keras_ortho.checks import check
from keras_ortho.keras_internals import layers_within


def recurrent_layers(model: keras.layers.Layer) -> list[Any]:
    """Returns all recurrent layers, in models and wrappers at any depth."""
    wanted = "be built: give it an `Input`, or call it once"
    check(model.built, "model", wanted, f"{model.name} with built=False")
    return [each for each in layers_within(model) if isinstance(each, keras.layers.RNN)]


def entries(layer: Any, state: int | None, units: slice | None) -> np.ndarray:
    """Locates a state, or some of its units, in the concatenation of all states."""
    sizes = [int(size) for size in tree.flatten(layer.cell.state_size)]
    places = np.arange(sum(sizes))
    if state is not None:
        wanted = f"be `None` or less than {len(sizes)}, the number of states"
        fits = -len(sizes) <= state < len(sizes)
        check(fits, "state", wanted, f"state={state!r}")
        places = np.split(places, np.cumsum(sizes)[:-1])[state]
    return np.atleast_1d(places[slice(None) if units is None else units])


class Steps:
    """A cell within a sequence, all states of which are packed into `(batch, s)`."""

    def __init__(self, cell: Any, states: list[Any]) -> None:
        stacked = isinstance(cell, keras.layers.StackedRNNCells)
        self.cells: list[Any] = list(cell.cells) if stacked else [cell]
        self.states: list[Any] = states if stacked else [states]

    def unpack(self, packed: Tensor) -> list[Any]:
        """Splits packed states into a list of the states of each cell."""
        sizes = [state.shape[-1] for state in tree.flatten(self.states)]
        places = zip(sizes, np.cumsum(sizes).tolist(), strict=True)
        parts = [packed[..., end - size : end] for size, end in places]
        return tree.pack_sequence_as(self.states, parts)

    def advance(
        self, inputs: Tensor, packed: Tensor, shift: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Returns the output and the states of a step, both after a `shift`."""
        after = []
        shifts = self.unpack(packed if shift is None else shift)
        for cell, states, added in zip(
            self.cells, self.unpack(packed), shifts, strict=True
        ):
            nested = list(states) if tree.is_nested(states) else [states]
            inputs, new = cell(inputs, nested)
            new = tree.flatten(new)
            if shift is not None:
                moved = [a + b for a, b in zip(new, tree.flatten(added), strict=True)]
                inputs, new = _output_of(cell, inputs, new, moved), moved
            after += new
        return inputs, ops.concatenate(after, axis=-1)

    def run(
        self, sequences: Tensor, packed: Tensor, mask: Tensor, *shift: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Runs all time steps, and returns the outputs and the states after each.

        All arguments but `packed`, the states before the first step, begin with time. A
        `shift` is added to the states after each step that is not masked.
        """
        dtype = packed.dtype
        output = ops.cast(self.advance(sequences[0], packed)[0], dtype)

        def step(carry: tuple, index: Tensor, given: tuple) -> tuple:
            inputs, keep, *moved = given
            new = zip(self.advance(inputs, carry[1], *moved), carry, strict=True)
            keep = keep[:, None]
            carry = tuple(ops.where(keep, ops.cast(a, dtype), b) for a, b in new)
            return carry, carry

        _, found = scan(
            step,
            (ops.zeros_like(output), packed),
            (sequences, mask, *shift),
            length=ops.shape(sequences)[0],
            collect=((ops.shape(output), dtype), (ops.shape(packed), dtype)),
        )
        return stack(found[0]), stack(found[1])

    def jacobians(
        self, inputs: Tensor, packed: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Differentiates the new states by the states and the inputs of one step."""
        # Each sequence is repeated `size` times: one gradient yields all rows.
        (batch, size), width = ops.shape(packed), ops.shape(inputs)[-1]
        one = ops.eye(size, dtype=packed.dtype)
        by_inputs, by_state = gradients(
            lambda inputs, packed: ops.sum(
                self.advance(inputs, packed)[1] * ops.tile(one, (batch, 1))
            ),
            [ops.repeat(inputs, size, axis=0), ops.repeat(packed, size, axis=0)],
        )
        keep = mask[:, None, None]
        by_state = ops.where(keep, ops.reshape(by_state, (batch, size, size)), one)
        by_inputs = ops.where(keep, ops.reshape(by_inputs, (batch, size, width)), 0)
        return exact(by_state), exact(by_inputs)


def exact(values: Tensor) -> Tensor:
    """Casts a tensor of a narrower dtype to float32."""
    return ops.cast(values, wide_dtype(values.dtype))


def _output_of(cell: Any, output: Tensor, new: list, moved: list) -> Tensor:
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


def probe_of(
    model: Any, layer: Any, measure: Callable[..., Any], *arguments: Any
) -> "Probe":
    """Returns the `Probe` that measures with these arguments, made once for a model."""
    # In the model, and so for as long as it exists, but not tracked by Keras.
    kept = vars(model).setdefault("_measurements", {})
    # A `slice` has no hash on Python 3.11.
    hashable = (repr(x) if isinstance(x, slice) else x for x in arguments)
    key = (layer, measure, *hashable)
    if key not in kept:
        kept[key] = Probe(model, layer, partial(measure, *arguments))
    return kept[key]


class Probe:
    """A compiled function of the probe and tensors that does not change the model."""

    def __init__(self, model: Any, layer: Any, measure: Callable[..., Any]) -> None:
        layers = recurrent_layers(model)
        found = [each for each in layers if layer in (None, each.name) or each is layer]
        names = ", ".join(repr(each.name) for each in layers) or "it has none"
        wanted = f"be one of the recurrent layers of the model: {names}"
        check(len(found) == 1, "layer", wanted, f"layer={layer!r}")
        self.model, self.layer, self.measure = model, found[0], measure
        self._function = in_graph(self._traced)

    def __call__(self, *data: Any) -> Any:
        """Runs the measurement on nested arrays."""
        data = tree.map_structure(ops.convert_to_tensor, data)
        sizes = {x.shape[0] for x in tree.flatten(data)}
        check(len(sizes) == 1, "x", "have the number of sequences of `y`", sizes)
        values = [ops.convert_to_tensor(v) for v in self._variables()]
        return tree.map_structure(ops.convert_to_numpy, self._function(values, data))

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
        self, x: Any, question: Callable[..., Any], *shift: Tensor
    ) -> tuple[Any, Any]:
        """Runs the model and observes the layer. Call it only in `measure`.

        Returns the model's output and the answer of `question`, a function of the
        `Steps`, and of the inputs, the states before each step and the mask, which have
        the shape `(time, batch, ...)`. `shift` is as in `Steps.run`.
        """
        layer, answers = self.layer, []

        def loop(
            sequences: Tensor, initial_state: Any, mask: Any, training: bool = False
        ) -> tuple[Tensor, Tensor, list[Any]]:
            steps = Steps(layer.cell, initial_state)
            first = ops.concatenate(tree.flatten(initial_state), axis=-1)
            inputs = ops.swapaxes(sequences, 0, 1)
            keep = ops.ones(ops.shape(inputs)[:2], "bool")
            for given in tree.flatten(mask):
                if given is not None:
                    keep = ops.swapaxes(ops.cast(given, "bool"), 0, 1)
            if layer.go_backwards:
                inputs, keep = ops.flip(inputs, axis=0), ops.flip(keep, axis=0)
            outputs, after = steps.run(inputs, first, keep, *shift)
            before = ops.concatenate([first[None], after[:-1]])
            answers.append(question(steps, inputs, before, keep))
            if layer.zero_output_for_mask:
                outputs = ops.where(keep[:, :, None], outputs, 0)
            last = tree.pack_sequence_as(
                initial_state, tree.flatten(steps.unpack(after[-1]))
            )
            return outputs[-1], ops.swapaxes(outputs, 0, 1), last

        # In `vars`, as Keras tracks attributes. cuDNN would not come to the loop.
        with mock.patch.dict(vars(layer), inner_loop=loop, use_cudnn=False):
            output = self.model(x, training=False)
        received = f"{layer.name}, called {len(answers)} times"
        check(len(answers) == 1, "model", "call the recurrent layer once", received)
        return output, answers[0]
