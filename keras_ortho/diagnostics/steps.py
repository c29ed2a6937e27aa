"""Time steps of any recurrent cell, with its states packed into one tensor."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops, tree

from keras_ortho.backend import scan, stack
from keras_ortho.backend.differentiation import gradients
from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.cells import RecurrentCell


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
        ends = [sum(self.sizes[: i + 1]) for i in range(len(self.sizes))]
        parts = [
            packed[..., end - size : end]
            for size, end in zip(self.sizes, ends, strict=True)
        ]
        return tree.pack_sequence_as(self.structure, parts)

    def states(self, packed: Tensor) -> list[Any]:
        """Splits packed states into the structure that Keras's layer uses."""
        states = self.unpack(packed)
        return states if self.stacked else states[0]

    def advance(
        self, inputs: Tensor, packed: Tensor, shift: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Runs one time step, and returns the output and the new packed states.

        A `shift` is added to the new states before the output is computed from them.
        """
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
        """Computes the Jacobians of one time step for each sequence.

        Returns the derivatives of the new states with respect to the states and to the
        inputs, of shape `(batch, s, s)` and `(batch, s, m)`, in float32 or float64.
        Each sequence is repeated `s` times, so that one gradient yields all rows.
        """
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
