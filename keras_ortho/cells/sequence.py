"""The sequence that a cell is reading: what is computed once for all its steps.

If the cell is a `DropoutRNNCell`, Keras's `RNN` calls `get_dropout_mask` and
`get_recurrent_dropout_mask` of the cell once before its loop over time, and the two
reset methods once after it. A cell of this package computes its recurrent kernel from
its free variables in these calls, so that `keras.layers.RNN` also does it once per
forward pass.
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
    """What stays the same at all steps of a sequence.

    Attributes:
        recurrent_kernel: `W` or its blocks, in the compute dtype.
        input_mask: Dropout mask that multiplies the inputs, or `None`.
        state_mask: Dropout mask that multiplies the states before `W`, or `None`.
        call: The Keras call that reads the sequence.
    """

    recurrent_kernel: Tensor
    input_mask: Tensor | None
    state_mask: Tensor | None
    call: Any


class SequenceCell(DropoutRNNCell, keras.layers.Layer):
    """Base class of a cell that computes its recurrent kernel once per sequence.

    A subclass has the attributes `dropout`, `recurrent_dropout` and `seed_generator`,
    and implements `step_kernel`.
    """

    dropout: float
    recurrent_dropout: float

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # Several threads may call a model at once, for example in a server.
        self._thread = threading.local()

    @property
    def _sequence(self) -> Sequence | None:
        return getattr(self._thread, "sequence", None)

    @_sequence.setter
    def _sequence(self, sequence: Sequence | None) -> None:
        self._thread.sequence = sequence

    def step_kernel(self) -> Tensor:
        """Computes `W` in the form that a step takes, in the dtype of the variables."""
        raise NotImplementedError

    def begin_training_pass(self) -> None:
        """Updates untrained variables before a sequence is read in training."""

    def sequence_of(self, inputs: Tensor, state: Tensor) -> Sequence:
        """Returns what a step needs: the current sequence, or one for this step.

        Args:
            inputs: Inputs of the step, of shape `(batch, m)`.
            state: State before the step, of shape `(batch, state_size)`.

        Returns:
            The sequence that the current Keras call has begun. If the cell is called
            by itself, a new one.
        """
        sequence = self._sequence
        # Only what the current call has prepared may be used: an exception in a
        # loop leaves the sequence of an earlier call behind.
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
            The dropout mask of the inputs, or `None` without dropout.
        """
        if call_is_training():
            self.begin_training_pass()
        self._sequence = sequence = self._begin(step_input)
        return sequence.input_mask

    @contextlib.contextmanager
    def reading(self, step_input: Tensor) -> Iterator[None]:
        """Computes the recurrent kernel once for all calls of the cell in the context.

        Use it around your own loop over time, as `keras.layers.RNN` does with its loop.

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
        """Makes the mask of the states for the current sequence.

        Args:
            step_input: State of shape `(batch, n)`.

        Returns:
            The dropout mask of the states, or `None` without dropout.
        """
        mask = self._mask(step_input, self.recurrent_dropout)
        if self._sequence is not None:
            self._sequence.state_mask = mask
        return mask

    def reset_dropout_mask(self) -> None:
        """Ends the sequence: discards the recurrent kernel and the masks."""
        self._sequence = None

    def reset_recurrent_dropout_mask(self) -> None:
        """Ends the sequence: discards the recurrent kernel and the masks."""
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
