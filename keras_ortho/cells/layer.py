"""Base class of the layers, each of which runs a cell over a sequence."""

import operator
from typing import Any, ClassVar, Self

import keras
import numpy as np
from keras import ops

from keras_ortho import checks
from keras_ortho.backend import uncompiled
from keras_ortho.backend.types import Tensor
from keras_ortho.cells.cell import CellArguments, RecurrentCell
from keras_ortho.keras_internals import (
    AutocastScope,
    call_is_training,
    get_keras_mask,
    knowing_also,
    no_automatic_dependency_tracking,
    rnn,
    within_call,
)
from keras_ortho.recurrence import recurrence

__all__ = ["RecurrentLayer"]


class LayerArguments(CellArguments, total=False):
    """The keyword arguments of every layer: those of cells and of `RecurrentLayer`."""

    recompute: bool | int
    return_sequences: bool
    return_state: bool
    go_backwards: bool
    stateful: bool
    unroll: bool
    zero_output_for_mask: bool


def _of_cell(name: str) -> Any:
    return property(operator.attrgetter(f"cell.{name}"), doc=f"`{name}` of the cell.")


class RecurrentLayer(keras.layers.RNN):
    """Base class of recurrent layers, each built around one class of cells.

    A subclass sets `cell_class`. It takes the arguments of that cell and those of
    `keras.layers.RNN`. What Keras's `SimpleRNN` has as attributes the layer has, too;
    the other arguments are attributes of its `cell`.

    `keras_ortho.recurrence` computes the whole sequence, with its own gradient, if the
    cell has no `step` of its own and the derivative of its activation is known
    (modReLU, OPLU, ReLU, leaky ReLU, tanh, sigmoid, linear). In training, the result
    can then be differentiated in reverse mode only, and on TensorFlow and PyTorch only
    once; on JAX twice, but not with respect to the free variables of an exponential
    (`NNRNN` by default) or what `ENRNN` normalizes. Otherwise, and with `unroll`,
    Keras's loop runs the cell, as in `keras.layers.RNN(cell)`, with the same results
    but for masked steps at the start of a sequence, which are zero on every backend.

    Args:
        *args: Arguments of the cell.
        recompute: Whether to save memory on long sequences by recomputing states for
            the gradient: `True` keeps about the square root of their number, an integer
            `k` keeps every `k`-th. Keras's loop keeps all of them. Default: `False`.
        return_sequences: Whether to return all outputs, not the last one. Default:
            `False`.
        return_state: Whether to return the last state as well. Default: `False`.
        go_backwards: Whether to process the sequences backwards. Default: `False`.
        stateful: Whether each batch starts from the last states of the previous batch.
            Default: `False`.
        unroll: Whether to unroll the loop over time. Default: `False`.
        zero_output_for_mask: Whether the output of a masked step is zero rather than
            the output of the step before it. Default: `False`.
        **kwargs: Keyword arguments of the cell and of `keras.layers.Layer`.

    Call arguments:
        sequences: Tensor of shape `(batch, time, m)`, of any real dtype.
        initial_state: The state before the first step, a tensor of shape `(batch, n)`
            or a list with that tensor. Default: the trained initial state, or zero.
        mask: Boolean tensor of shape `(batch, time)`, `False` for steps that leave the
            state unchanged.
        training: Whether to apply dropout to the inputs and states.

    Output shape:
        `(batch, n)`, or `(batch, time, n)` with `return_sequences`; with
        `return_state`, a list of that and the last state, `(batch, n)`. With complex
        units, `2n` instead of `n`, the real parts first.

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument is missing.

    Example:
    >>> from keras_ortho import ScoRNNCell
    >>> class Orthogonal(RecurrentLayer):
    ...     cell_class = ScoRNNCell
    >>> Orthogonal(8, return_sequences=True)(np.ones((2, 3, 1))).shape
    (2, 3, 8)
    """

    cell_class: ClassVar[type[RecurrentCell]]
    units = _of_cell("units")
    activation = _of_cell("activation")
    use_bias = _of_cell("use_bias")
    kernel_initializer = _of_cell("kernel_initializer")
    recurrent_initializer = _of_cell("recurrent_initializer")
    bias_initializer = _of_cell("bias_initializer")
    kernel_regularizer = _of_cell("kernel_regularizer")
    recurrent_regularizer = _of_cell("recurrent_regularizer")
    bias_regularizer = _of_cell("bias_regularizer")
    kernel_constraint = _of_cell("kernel_constraint")
    bias_constraint = _of_cell("bias_constraint")
    dropout = _of_cell("dropout")
    recurrent_dropout = _of_cell("recurrent_dropout")

    def __init__(
        self, *args: Any, recompute: bool | int = False, **kwargs: Any
    ) -> None:
        if not isinstance(recompute, bool):
            recompute = checks.check_count("recompute", recompute)
        own = [*self.cell_class.argument_names(), "frozen"]
        cell_kwargs = {name: kwargs.pop(name) for name in own if name in kwargs}
        cell = self.cell_class(
            *args,
            dtype=kwargs.get("dtype"),
            trainable=kwargs.get("trainable", True),
            **cell_kwargs,
        )
        super().__init__(cell, **kwargs)
        self.recompute = recompute
        # Whether a stateful layer with a trained initial state has left that state.
        self.has_begun: keras.Variable | None = None
        self.input_spec: Any = keras.layers.InputSpec(ndim=3)

    @classmethod
    def from_paper(cls, *args: Any, **kwargs: Any) -> Self:
        """Creates a layer with the settings of the paper's experiments.

        Those given override the paper's, see `RecurrentCell.from_paper`.

        Example:
        >>> from keras_ortho import ScoRNN
        >>> layer = ScoRNN.from_paper(170, negative_ones=17, return_sequences=True)
        """
        return cls(*args, **{**cls.cell_class.paper_arguments, **kwargs})

    def recurrent_matrix(self) -> Tensor:
        """Computes `W` from its variables: see `RecurrentCell.recurrent_matrix`."""
        return self.cell.recurrent_matrix()

    def set_recurrent_matrix(self, matrix: Tensor | np.ndarray) -> None:
        """Sets `W` to a matrix: see `RecurrentCell.set_recurrent_matrix`."""
        self.cell.set_recurrent_matrix(matrix)

    def rebase(self) -> None:
        """Moves the base of a `Rebased` parametrization: see `RecurrentCell.rebase`."""
        self.cell.rebase()

    def build(
        self, sequences_shape: tuple[int | None, ...], initial_state_shape: Any = None
    ) -> None:
        """Creates the weights, for inputs of shape `(batch, time, m)`."""
        if len(sequences_shape) != 3:
            name, cell = type(self).__name__, self.cell_class.__name__
            raise ValueError(
                f"`{name}` is a layer, for sequences of shape `(batch, time, m)`. "
                "Inside `keras.layers.RNN`, use its cell: "
                f"`keras.layers.RNN({cell}(...))`. Received: inputs of shape "
                f"{tuple(sequences_shape)}"
            )
        super().build(sequences_shape, initial_state_shape)
        self.input_spec = keras.layers.InputSpec(ndim=3, axes={-1: sequences_shape[-1]})

    @uncompiled
    def call(
        self,
        sequences: Tensor,
        initial_state: Any = None,
        mask: Tensor | None = None,
        training: bool = False,
    ) -> Any:
        """Runs the layer over the sequences: see `Call arguments` of the class."""
        training = call_is_training(training)
        checks.check_real_tensor("sequences", sequences)
        given = [] if initial_state is None else keras.tree.flatten(initial_state)
        if len(given) > 1:
            raise ValueError(
                "`initial_state` must be a tensor, or a list with one tensor: the "
                f"layer has a single state. Received: {len(given)} initial states"
            )
        for state in given:
            checks.check_real_tensor("initial_state", state)
        if mask is None:  # With an initial state, Keras does not pass its mask.
            mask = get_keras_mask(sequences)
        # Keras does not cast integers, and `TimeDistributed` calls `call` directly,
        # with inputs and weights in its own precision. Outside a Keras call, the cell
        # could not tell whether it is training, or where a sequence ends. The cell's
        # precision is used, as that of the layer may have been changed.
        compute_dtype = self.cell.compute_dtype
        sequences = ops.cast(sequences, compute_dtype)
        with within_call(self, training), AutocastScope(compute_dtype):
            if initial_state is None and self.has_begun is not None:
                initial_state = self._carried_or_trained_state()
            outputs = super().call(
                sequences, initial_state=initial_state, mask=mask, training=training
            )
        if self.has_begun is not None:
            self.has_begun.assign(True)
        return outputs

    @no_automatic_dependency_tracking
    def _create_state_variables(self, batch_size: int) -> None:
        super()._create_state_variables(batch_size)
        if self.cell.trainable_initial_state:
            # Like the states in Keras, a variable of the layer but not a weight.
            self.has_begun = keras.Variable(
                False, trainable=False, dtype="bool", name="has_begun"
            )

    def _carried_or_trained_state(self) -> list[Tensor]:
        """Returns the state from which a stateful layer continues or starts.

        The initial state may have been loaded, set or trained since `reset_state()`.
        It is read at the first batch, so that its current values are used and trained.
        """
        # A copy: PyTorch's gradient needs the current value.
        has_begun = ops.copy(self.has_begun)
        (state,) = self.states
        (start,) = self.get_initial_state(state.shape[0])
        return [ops.where(has_begun, ops.cast(state, start.dtype), start)]

    def inner_loop(
        self,
        sequences: Tensor,
        initial_state: list[Tensor],
        mask: Tensor | None,
        training: bool = False,
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Computes the last output, all outputs, and a list with the last state."""
        if mask is not None:
            checks.check_fits("mask", mask, sequences.shape[:2], "the sequences")
            # In a numeric mask, nonzero entries count as `True`, as in Keras.
            mask = ops.cast(mask, "bool")
        state = _of_each_sequence(initial_state[0], sequences, self.cell.state_size)
        if self.go_backwards:
            sequences = ops.flip(sequences, axis=1)
            mask = None if mask is None else ops.flip(mask, axis=1)
        if self.stateful:
            # PyTorch overwrites the state with the next one; its gradient needs this.
            state = ops.copy(state)
        run = self._keras_loop if self.unroll else self._whole_sequence
        last_output, outputs, states = run(sequences, state, mask, training)
        if mask is not None:
            shown = mask
            if not self.zero_output_for_mask:
                # Zero, not the initial state, before the first unmasked step.
                shown = ops.cumsum(ops.cast(mask, "int32"), axis=1) > 0
            # Keras's own loops do this only on some backends, or only when unrolled.
            last_output = ops.where(shown[:, -1:], last_output, 0)
            if self.return_sequences:
                outputs = ops.where(shown[:, :, None], outputs, 0)
        return last_output, outputs, states

    def _keras_loop(
        self, sequences: Tensor, state: Tensor, mask: Tensor | None, training: bool
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Runs the cell in Keras's loop over time."""
        # With a mask, Keras's loop on JAX returns states as outputs of masked steps.
        differ = self.cell.output_size != self.cell.state_size
        read_out_later = differ and self.cell.inherits("call")

        def step(inputs: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
            output, new = self.cell(inputs, states, training=training)
            return (new[0] if read_out_later else output), new

        last_output, outputs, states = rnn(
            step,
            sequences,
            [state],
            mask=mask,
            unroll=self.unroll,
            input_length=sequences.shape[1],
            return_all_outputs=self.return_sequences,
        )
        if read_out_later:
            last_output = self.cell.read_out(last_output)
            outputs = self.cell.read_out(outputs)
        return last_output, outputs, states

    def _whole_sequence(
        self, sequences: Tensor, state: Tensor, mask: Tensor | None, training: bool
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Runs the recurrence with its own gradient, if the step of the cell is known.

        Otherwise, Keras's loop runs the cell.
        """
        weights, input_mask, state_mask = self.cell.known_step(training)
        if weights is None:
            return self._keras_loop(sequences, state, mask, training)
        if input_mask is not None:
            sequences = sequences * input_mask[:, None]
        states = recurrence(
            sequences,
            weights,
            state,
            mask=mask,
            state_mask=state_mask,
            return_sequences=self.return_sequences,
            recompute=self.recompute,
            training=training,
        )
        outputs = self.cell.read_out(states)
        if self.return_sequences:
            return outputs[:, -1], outputs, [states[:, -1]]
        return outputs, outputs, [states]

    def reset_state(self) -> None:
        """Resets the states of a stateful layer to the initial state.

        That is zero, or the trained initial state as it is when the next batch starts.
        """
        if self.states is None:
            return
        (state,) = self.states
        state.assign(self.get_initial_state(state.shape[0])[0])
        if self.has_begun is not None:
            self.has_begun.assign(False)

    def get_config(self) -> dict[str, Any]:
        """Returns the config of the layer."""
        config = super().get_config()
        cell = config.pop("cell")["config"]
        return {**cell, **config, "recompute": self.recompute}

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None
    ) -> "RecurrentLayer":
        """Creates a layer from its config, with classes that Keras does not know."""
        with knowing_also(custom_objects or {}):
            return cls(**cls.cell_class.arguments_of(config))


def _of_each_sequence(state: Tensor, sequences: Tensor, size: int) -> Tensor:
    """Broadcasts an initial state to the batch, if it has a single row."""
    batch = sequences.shape[0]
    rows = 1 if tuple(state.shape[:1]) == (1,) else batch
    checks.check_fits("initial_state", state, (rows, size), "the sequences")
    # With an unknown batch size, a wrong number of states is an error at run time.
    return ops.broadcast_to(state, (ops.shape(sequences)[0], size))
