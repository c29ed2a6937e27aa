"""The sequence that a cell is reading: what is made once for all its steps.

Keras's `RNN` calls `get_dropout_mask` and `get_recurrent_dropout_mask` of its cell
once before its loop over time, and the two resets once after it, if the cell is a
`DropoutRNNCell`. That is where a cell of this package makes its recurrent kernel
from its free variables, so that the stock layer does it once per forward pass too.
"""

import contextlib
import dataclasses
import threading
from collections.abc import Iterator
from typing import Any

import keras
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.keras_internals import DropoutRNNCell, call_is_training, current_call


@dataclasses.dataclass
class Sequence:
    """What does not change from step to step while a sequence is read.

    Attributes:
        recurrent_kernel: `W` in the compute dtype, or its blocks.
        input_mask: What to multiply the inputs with in training, or `None`.
        state_mask: What to multiply the states with before `W`, or `None`.
        call: The call into Keras that reads it.
    """

    recurrent_kernel: Tensor
    input_mask: Tensor | None
    state_mask: Tensor | None
    call: Any


class SequenceCell(DropoutRNNCell, keras.layers.Layer):
    """Base of a cell that makes its recurrent kernel once for a sequence.

    A subclass has the attributes `dropout`, `recurrent_dropout` and `seed_generator`,
    and gives `step_kernel`.
    """

    dropout: float
    recurrent_dropout: float

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # A model may be called in several threads at once, as by a server.
        self._thread = threading.local()

    @property
    def _sequence(self) -> Sequence | None:
        return getattr(self._thread, "sequence", None)

    @_sequence.setter
    def _sequence(self, sequence: Sequence | None) -> None:
        self._thread.sequence = sequence

    def step_kernel(self) -> Tensor:
        """Makes `W` as a step takes it, in the dtype of the variables."""
        raise NotImplementedError

    def begin_training_pass(self) -> None:
        """Changes what is not trained, before a sequence is read in training."""

    def sequence_of(self, inputs: Tensor, state: Tensor) -> Sequence:
        """Gives what a step needs: of the sequence that has begun, or its own.

        Args:
            inputs: Inputs of the step, of shape `(batch, m)`.
            state: The state before, of shape `(batch, state_size)`.

        Returns:
            What was made for the sequence, or just now, where the cell is called by
            itself.
        """
        sequence = self._sequence
        # Only what the call that is under way has prepared may be used: an
        # exception in a loop leaves what it had prepared behind.
        call = current_call(self)
        if sequence is None or call is None or sequence.call is not call:
            sequence = self._begin(inputs)
            sequence.state_mask = self._mask(state, self.recurrent_dropout)
        return sequence

    def get_dropout_mask(self, step_input: Tensor) -> Tensor | None:
        """Begins a sequence: makes the recurrent kernel and the mask of the inputs.

        Args:
            step_input: Inputs of one step, of shape `(batch, m)`.

        Returns:
            The mask of the inputs, or `None` without dropout.
        """
        if call_is_training():
            self.begin_training_pass()
        self._sequence = sequence = self._begin(step_input)
        return sequence.input_mask

    @contextlib.contextmanager
    def reading(self, step_input: Tensor) -> Iterator[None]:
        """Makes the recurrent kernel once for all calls of the cell within.

        As Keras's `RNN` does around its loop; for a loop of one's own.

        Args:
            step_input: Inputs of one step, of shape `(batch, m)`.

        Yields:
            Nothing.
        """
        self.get_dropout_mask(step_input)
        try:
            yield
        finally:
            self.reset_dropout_mask()

    def get_recurrent_dropout_mask(self, step_input: Tensor) -> Tensor | None:
        """Makes the mask of the states for the sequence that has begun.

        Args:
            step_input: State of shape `(batch, n)`.

        Returns:
            The mask of the states, or `None` without dropout.
        """
        mask = self._mask(step_input, self.recurrent_dropout)
        if self._sequence is not None:
            self._sequence.state_mask = mask
        return mask

    def reset_dropout_mask(self) -> None:
        """Ends the sequence: forgets the recurrent kernel and the masks."""
        self._sequence = None

    def reset_recurrent_dropout_mask(self) -> None:
        """Ends the sequence: forgets the recurrent kernel and the masks."""
        self._sequence = None

    def _begin(self, inputs: Tensor) -> Sequence:
        return Sequence(
            recurrent_kernel=ops.cast(self.step_kernel(), self.compute_dtype),
            input_mask=self._mask(inputs, self.dropout),
            state_mask=None,
            call=current_call(self),
        )

    def _mask(self, like: Tensor, rate: float) -> Tensor | None:
        if rate == 0:
            return None
        return self._create_dropout_mask(ops.cast(like, self.compute_dtype), rate)
