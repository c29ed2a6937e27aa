"""The layer of a cell: `LSTM` is to `LSTMCell` what `ScoRNN` is to `ScoRNNCell`."""

import inspect
import operator
from typing import Any, ClassVar, Self

import keras
import numpy as np
from keras import ops

from keras_ortho import checks, configs
from keras_ortho.backend.compile import uncompiled
from keras_ortho.backend.types import Tensor
from keras_ortho.cells import arguments, modrelu_names
from keras_ortho.cells.base import RecurrentCell
from keras_ortho.cells.step import KnownStep
from keras_ortho.keras_internals import (
    AutocastScope,
    get_keras_mask,
    knowing_also,
    no_automatic_dependency_tracking,
    rnn,
    within_call,
)
from keras_ortho.recurrence import recurrence


class RecurrentLayer(keras.layers.RNN):
    """A recurrent layer around one kind of cell.

    A subclass names its cell as `cell_class`, and has that cell's arguments and
    those of `keras.layers.RNN`; each argument of the cell is an attribute.

    Where the cell describes its step by `step_weights`, as all of the package do, and
    the derivative of its activation is known (modReLU, OPLU, ReLU, leaky ReLU, tanh,
    sigmoid, none), the whole sequence is computed by `keras_ortho.recurrence`, with a
    gradient of its own, which can be differentiated once, in reverse mode. Otherwise,
    and with `unroll`, Keras's loop runs the cell, as `keras.layers.RNN(cell)` does, to
    the same result. They differ only on JAX, for sequences that begin with masked
    steps: for these steps Keras outputs the initial state, and this layer zeros, as
    both do on TensorFlow.

    Args:
        *args: Arguments of the cell.
        recompute: Whether to keep only some states for the gradient and recompute
            those in between, for long sequences: `True` keeps about the square root of
            their number, an int `k` every `k`-th. Keras's loop keeps them all. Default:
            `False`.
        return_sequences: Whether to return all outputs, not the last. Default:
            `False`.
        return_state: Whether to return the last state, too. Default: `False`.
        go_backwards: Whether to read the sequences from their end. Default: `False`.
        stateful: Whether a batch starts where the one before ended. Default: `False`.
        unroll: Whether to write the steps one after the other into the program.
            Default: `False`.
        zero_output_for_mask: Whether the output of a masked step is zero, not that of
            the step before. Default: `False`.
        **kwargs: Arguments of the cell, by name, and Keras's of a layer, such as `name`
            and `dtype`.

    Call arguments:
        sequences: Tensor of shape `(batch, time, m)`, of any real dtype.
        initial_state: The state before the first step, a tensor of shape `(batch, n)`,
            or a list of it. Default: the trained one, or zero.
        mask: Boolean tensor of shape `(batch, time)`, `False` for steps that leave the
            state as it is.
        training: Whether to drop out inputs and states.

    Output shape:
        `(batch, n)`, or `(batch, time, n)` with `return_sequences`; with
        `return_state` a list of that and the last state, `(batch, n)`. A layer of
        complex units has `2n` for `n`, the real parts first.

    Raises:
        ValueError: If an argument is out of its range.
        TypeError: If one is missing, or the class names no cell.

    Example:

    >>> from keras_ortho import ScoRNNCell
    >>> class Orthogonal(RecurrentLayer):
    ...     cell_class = ScoRNNCell
    >>> Orthogonal(8, return_sequences=True)(np.ones((2, 3, 1))).shape
    (2, 3, 8)
    """

    cell_class: ClassVar[type[RecurrentCell]]
    __signature__: ClassVar[inspect.Signature]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cell = list(cls.cell_class.__signature__.parameters.values())
        added = [
            p for p in configs.declared(RecurrentLayer) if p.kind is p.KEYWORD_ONLY
        ]
        cls.__signature__ = arguments.join(
            cell, added + configs.declared(keras.layers.RNN)[1:]
        )
        own = {*arguments.names(cls.cell_class), *cls.cell_class.given_arguments}
        for name in own - set(vars(cls)):
            # Without the docstring of `attrgetter`, which says nothing of it.
            setattr(cls, name, property(operator.attrgetter(f"cell.{name}"), doc=""))

    def __init__(
        self, *args: Any, recompute: bool | int = False, **kwargs: Any
    ) -> None:
        if not isinstance(recompute, bool):
            if not checks.is_integer(recompute) or recompute < 1:
                raise ValueError(
                    "`recompute` must be a boolean or a positive integer. "
                    f"Received: recompute={recompute!r}"
                )
            recompute = int(recompute)
        if not hasattr(self, "cell_class"):
            raise TypeError(
                "A subclass must name its cell as `cell_class`. "
                f"Received: {type(self).__name__}"
            )
        arguments.check_given(type(self), self.cell_class, args, kwargs)
        own = arguments.names(self.cell_class)
        cell_kwargs = {name: kwargs.pop(name) for name in own if name in kwargs}
        cell = self.cell_class(
            *args,
            dtype=kwargs.get("dtype"),
            trainable=kwargs.get("trainable", True),
            **cell_kwargs,
        )
        super().__init__(cell, **kwargs)
        self.recompute = recompute
        # Of a stateful layer with a trained initial state, whether it has left that.
        self.has_begun: keras.Variable | None = None
        self.input_spec: Any = keras.layers.InputSpec(ndim=3)

    @classmethod
    def from_paper(cls, *args: Any, **kwargs: Any) -> Self:
        """Makes a layer with the settings of the paper's experiments.

        Args:
            *args: Arguments of the layer, by position.
            **kwargs: Arguments of the layer, by name; they override the paper's,
                `paper_arguments` of its cell.

        Returns:
            A new layer.

        Raises:
            ValueError: As the class.

        Example:
        >>> from keras_ortho import ScoRNN
        >>> layer = ScoRNN.from_paper(170, negative_ones=17, return_sequences=True)
        """
        return cls(*args, **{**cls.cell_class.paper_arguments, **kwargs})

    def recurrent_matrix(self) -> Tensor:
        """Makes the recurrent matrix `W`, for row vectors, from its variables.

        Returns:
            Tensor of shape `(n, n)`, as the cell's method returns it.
        """
        return self.cell.recurrent_matrix()

    def set_recurrent_matrix(self, matrix: Tensor | np.ndarray) -> None:
        """Sets the free variables so that `W` is a given matrix.

        Args:
            matrix: Tensor or array of shape `(n, n)`.

        Raises:
            ValueError: As the cell's method.
        """
        self.cell.set_recurrent_matrix(matrix)

    def rebase(self) -> None:
        """Moves the base of a `Rebased` parametrization to `W`, see the cell's method.

        Raises:
            ValueError: As the cell's method.
        """
        self.cell.rebase()

    def build(
        self, sequences_shape: tuple[int | None, ...], initial_state_shape: Any = None
    ) -> None:
        """Creates the weights.

        Args:
            sequences_shape: Shape of the inputs, `(batch, time, m)`.
            initial_state_shape: Shape of the initial state. Not used.

        Raises:
            ValueError: If the inputs are not sequences: the layer has been given to
                another in place of a cell. If their last axis is not known.
        """
        if len(sequences_shape) != 3:
            name, cell = type(self).__name__, self.cell_class.__name__
            raise ValueError(
                f"`{name}` is a layer, of sequences of shape `(batch, time, m)`. Use "
                f"it by itself, or its cell in another: `keras.layers.RNN({cell}(...))"
                f"`. Received: inputs of shape {tuple(sequences_shape)}"
            )
        super().build(sequences_shape, initial_state_shape)
        self.input_spec = keras.layers.InputSpec(ndim=3, axes={-1: sequences_shape[-1]})

    def compute_output_shape(
        self,
        sequences_shape: tuple[int | None, ...],
        initial_state_shape: Any = None,
    ) -> Any:
        """Gives the shape of the output.

        Args:
            sequences_shape: Shape of the inputs.
            initial_state_shape: Shape of the initial state, or a list of it.

        Returns:
            The shape of the last output, or of all; with `return_state` a pair of it
            and that of the state.

        Raises:
            ValueError: If there are several initial states.
        """
        if initial_state_shape and isinstance(initial_state_shape[0], list | tuple):
            _check_single(initial_state_shape)
        return super().compute_output_shape(sequences_shape, initial_state_shape)

    @uncompiled
    def call(
        self,
        sequences: Tensor,
        initial_state: Any = None,
        mask: Tensor | None = None,
        training: bool = False,
    ) -> Any:
        """Computes the states, all in the compute dtype.

        Args:
            sequences: Tensor of shape `(batch, time, m)`, of any real dtype.
            initial_state: Tensor of shape `(batch, n)`, or a list of it. Default:
                that of the cell.
            mask: Boolean tensor of shape `(batch, time)`, or `None`.
            training: Whether to drop out inputs and states.

        Returns:
            The last output, or all; with `return_state` a tuple of it and the state.

        Raises:
            ValueError: If there is no step, `mask` or `initial_state` is of another
                shape, or the sequences or states are complex.
        """
        checks.check_real_tensor("sequences", sequences)
        if sequences.shape[1] == 0:
            raise ValueError(
                "`sequences` must have a step. "
                f"Received: sequences of shape {tuple(sequences.shape)}"
            )
        for state in keras.tree.flatten(initial_state):
            checks.check_real_tensor("initial_state", state)
        if isinstance(initial_state, list | tuple):
            _check_single(initial_state)
        if mask is None:  # Beside an initial state Keras does not hand it over.
            mask = get_keras_mask(sequences)
        elif not hasattr(mask, "shape"):
            raise ValueError(
                "`mask` must be a boolean tensor of shape (batch, time). "
                f"Received: mask={mask}"
            )
        # Keras leaves integers as they are, and `TimeDistributed` calls `call` itself,
        # with inputs and weights in its own precision. Where no call of Keras's is
        # under way, the cell could not tell training, nor one sequence from the next.
        # The cell's precision counts: that of the layer may have been changed.
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
            # Beside the states, as Keras has them: of the layer, not of its weights.
            self.has_begun = keras.Variable(
                False, trainable=False, dtype="bool", name="has_begun"
            )

    def _carried_or_trained_state(self) -> list[Tensor]:
        """Where a stateful layer goes on, or begins.

        The initial state may have been loaded, set or trained since `reset_state()`.
        Read at the first batch, it is the one of now, and is trained by that batch.
        """
        # A copy: PyTorch's gradient needs it as it is here.
        has_begun = ops.copy(self.has_begun)
        initial = self.get_initial_state(self.states[0].shape[0])
        return [
            ops.where(has_begun, ops.cast(state, start.dtype), start)
            for state, start in zip(self.states, initial, strict=True)
        ]

    def inner_loop(
        self,
        sequences: Tensor,
        initial_state: list[Tensor],
        mask: Tensor | None,
        training: bool = False,
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Runs the cell over the steps.

        Args:
            sequences: Tensor of shape `(batch, time, m)`.
            initial_state: List with a tensor of shape `(batch, n)`, or `(1, n)` for
                all sequences.
            mask: Boolean tensor of shape `(batch, time)`, or `None`.
            training: Whether to drop out inputs and states.

        Returns:
            The last output, all of them, and a list with the last state.

        Raises:
            ValueError: If `mask` or `initial_state` is of another shape.
        """
        if mask is not None:
            checks.check_fits("mask", mask, sequences.shape[:2], "the sequences")
            # Of numbers, what is not zero counts, as for Keras.
            mask = ops.cast(mask, "bool")
        initial_state = [
            _of_each_sequence(state, sequences, self.cell.state_size)
            for state in initial_state
        ]
        if self.go_backwards:
            sequences = ops.flip(sequences, axis=1)
            mask = None if mask is None else ops.flip(mask, axis=1)
        if self.stateful:
            # PyTorch writes the next state over it, and its gradient needs this one.
            initial_state = [ops.copy(state) for state in initial_state]
        known = None if self.unroll else self.cell.known_step(training)
        if known is None:
            last_output, outputs, states = self._loop(
                sequences, initial_state, mask, training
            )
        else:
            (state,) = initial_state
            last_output, outputs, states = self._whole_sequence(
                known, sequences, state, mask, training
            )
        if mask is not None:
            shown = mask
            if not self.zero_output_for_mask:
                # Zero, not the initial state, until the first step that counts.
                shown = ops.cumsum(ops.cast(mask, "int32"), axis=1) > 0
            # Keras's own loops do this on some backends, unrolled or not, only.
            last_output = ops.where(shown[:, -1:], last_output, 0)
            if self.return_sequences:
                outputs = ops.where(shown[:, :, None], outputs, 0)
        return last_output, outputs, states

    def _loop(
        self,
        sequences: Tensor,
        initial_state: list[Tensor],
        mask: Tensor | None,
        training: bool,
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Runs the cell in Keras's loop."""

        def step(inputs: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
            output, new = self.cell(inputs, states, training=training)
            return (new[0] if read_out_later else output), new

        # With a mask Keras's loop on JAX takes the states for outputs.
        read_out_later = self.cell.output_size != self.cell.state_size
        last_output, outputs, states = rnn(
            step,
            sequences,
            initial_state,
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
        self,
        known: KnownStep,
        sequences: Tensor,
        state: Tensor,
        mask: Tensor | None,
        training: bool,
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Runs the recurrence of a cell, with its own gradient."""
        if known.input_mask is not None:
            sequences = sequences * known.input_mask[:, None]
        states = recurrence(
            sequences,
            known.weights,
            state,
            mask=mask,
            state_mask=known.state_mask,
            return_sequences=self.return_sequences,
            recompute=self.recompute,
            training=training,
        )
        outputs = self.cell.read_out(states)
        if self.return_sequences:
            return outputs[:, -1], outputs, [states[:, -1]]
        return outputs, outputs, [states]

    def reset_state(self) -> None:
        """Sets the states of a stateful layer to the initial state.

        That is zero, or the trained initial state, as it is when the next batch begins.
        """
        if self.states is None:
            return
        batch_size = self.states[0].shape[0]
        for variable, value in zip(
            self.states, self.get_initial_state(batch_size), strict=True
        ):
            variable.assign(value)
        if self.has_begun is not None:
            self.has_begun.assign(False)

    def get_config(self) -> dict[str, Any]:
        """Gives the arguments that make an equal layer."""
        config = super().get_config()
        cell = config.pop("cell")["config"]
        own = [*arguments.names(self.cell_class), "frozen"]
        return {
            **config,
            "recompute": self.recompute,
            **{name: cell[name] for name in own if name in cell},
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None
    ) -> "RecurrentLayer":
        """Makes a layer from a config.

        Args:
            config: What `get_config` returned.
            custom_objects: Classes and functions that Keras does not know.

        Returns:
            A new layer.
        """
        config = modrelu_names.from_config(config, cls.cell_class.complex_state)
        frozen = config.get("frozen", False)
        with knowing_also(custom_objects or {}):
            layer = cls(**{k: v for k, v in config.items() if k != "frozen"})
        if frozen:
            layer.cell.freeze()
        return layer


def _check_single(states: Any) -> None:
    if len(states) != 1:
        raise ValueError(
            "`initial_state` must be one tensor, or a list of one: the layer has a "
            f"single state. Received: {len(states)} initial states"
        )


def _of_each_sequence(state: Tensor, sequences: Tensor, size: int) -> Tensor:
    """An initial state for each sequence, also of one for all of them."""
    state = ops.convert_to_tensor(state)
    batch = sequences.shape[0]
    rows = 1 if tuple(state.shape[:1]) == (1,) else batch
    checks.check_fits("initial_state", state, (rows, size), "the sequences")
    if batch is not None and state.shape[0] == batch:
        return state
    # Where the batch is not known yet, another number of states is an error then.
    return ops.broadcast_to(state, (ops.shape(sequences)[0], size))
