"""A recurrent layer that goes on where the batch before ended."""

from typing import Any

import keras
import numpy as np
from keras import ops, tree

from keras_ortho.backend.types import Tensor


@keras.saving.register_keras_serializable(package="keras_ortho")
class CarriedState(keras.layers.Wrapper):
    """Runs a recurrent layer from the state that the batch before left.

    As the argument `stateful` of Keras's recurrent layers, for truncated
    back-propagation through a long text: the state goes on, the gradient does not.
    But the states are weights that are not trained. So they are carried on within
    `fit` on every backend (JAX forgets those of `stateful`), and saved with the other
    weights: a run that is continued in the midst of the text goes on with them.

    Nothing resets the states but `reset_state()`: see
    `keras_ortho.training_callbacks.ResetStates`. In `fit`, `evaluate` and `predict`
    alike a batch changes them.

    Args:
        layer: A recurrent layer of Keras or of this package, with
            `return_sequences=True` and `return_state=True`, not stateful.
        **kwargs: Keras's arguments of a layer, such as `name` and `dtype`.

    Call arguments:
        sequences: Tensor of shape `(batch, time, m)`, of a known batch size.
        mask: Boolean tensor of shape `(batch, time)`, or `None`.
        training: Whether to drop out inputs and states.

    Output shape:
        `(batch, time, n)`.

    Weights:
        Those of the layer; and, not trained, `state_0`, `state_1`, ..., one for each
        state of the layer, and `has_begun`, a boolean.

    Raises:
        ValueError: If the layer is not such; in `build` if the batch size is not
            known.

    Example:
    >>> rnn = keras.layers.LSTM(8, return_sequences=True, return_state=True)
    >>> layer = CarriedState(rnn)
    >>> layer(np.zeros((32, 50, 3))).shape
    (32, 50, 8)
    >>> layer.reset_state()
    """

    def __init__(self, layer: keras.layers.Layer, **kwargs: Any) -> None:
        wanted = {"return_sequences": True, "return_state": True, "stateful": False}
        received = {name: getattr(layer, name, None) for name in wanted}
        # `Bidirectional` has these, too, but no initial state.
        if received != wanted or not hasattr(layer, "get_initial_state"):
            raise ValueError(
                "`layer` must be a recurrent layer with `return_sequences=True`, "
                "`return_state=True` and `stateful=False`. "
                f"Received: layer={layer} with {received}"
            )
        super().__init__(layer, **kwargs)
        self.supports_masking = True

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Builds the layer, and creates the states.

        Args:
            input_shape: Shape of the inputs.

        Raises:
            ValueError: If the batch size is not known.
        """
        batch_size = input_shape[0]
        if batch_size is None:
            raise ValueError(
                "The batch size must be known: give it as `keras.Input(batch_shape="
                f"(32, 50, 3))`. Received: input_shape={input_shape}"
            )
        if not self.layer.built:
            self.layer.build(input_shape)
        self.states = [
            self.add_weight(
                shape=state.shape,
                name=f"state_{number}",
                initializer="zeros",
                trainable=False,
                autocast=False,
            )
            for number, state in enumerate(
                tree.flatten(self.get_initial_state(batch_size))
            )
        ]
        self.has_begun = self.add_weight(
            shape=(),
            name="has_begun",
            dtype="bool",
            initializer="zeros",
            trainable=False,
        )
        self.built = True
        self.reset_state()

    def get_initial_state(self, batch_size: int) -> list[Any]:
        """Gives the states after `reset_state()`.

        Args:
            batch_size: Number of sequences.

        Returns:
            Tensors of shape `(batch_size, n)`, of stacked cells in a list for each.
        """
        return self.layer.get_initial_state(batch_size)

    def reset_state(self) -> None:
        """Sets the states to the initial state.

        That is zero, or the trained one, as it is when the next batch begins. A layer
        that is not built has none to set.
        """
        if not self.built:
            return
        initial = self.get_initial_state(self.states[0].shape[0])
        for variable, value in zip(self.states, tree.flatten(initial), strict=True):
            variable.assign(ops.cast(value, variable.dtype))
        self.has_begun.assign(False)

    def load_own_variables(self, store: Any) -> None:
        """Reads the weights, also from files of a version that had no `has_begun`.

        Args:
            store: What Keras saved, by number.
        """
        begun = {str(len(self.states)): np.array(True)}
        super().load_own_variables({**begun, **store})

    def call(
        self, sequences: Tensor, mask: Tensor | None = None, training: bool = False
    ) -> Tensor:
        """Runs the layer, and keeps its last state.

        Args:
            sequences: Tensor of shape `(batch, time, m)`.
            mask: Boolean tensor of shape `(batch, time)`, or `None`.
            training: Whether to drop out inputs and states.

        Returns:
            Tensor of shape `(batch, time, n)`.

        Raises:
            ValueError: If there are other than as many sequences as it was built for.
        """
        batch_size = self.states[0].shape[0]
        # What is not known yet is `None`, or a symbol where JAX exports.
        given = sequences.shape[0]
        if isinstance(given, int) and given != batch_size:
            raise ValueError(
                f"`sequences` must be {batch_size}, as the layer was built for. "
                f"Received: sequences of shape {tuple(sequences.shape)}"
            )
        outputs, *last = self.layer(
            sequences,
            initial_state=self._carried_or_initial_state(),
            mask=mask,
            training=training,
        )
        for variable, value in zip(self.states, tree.flatten(last), strict=True):
            variable.assign(ops.cast(value, variable.dtype))
        self.has_begun.assign(True)
        return outputs

    def _carried_or_initial_state(self) -> Any:
        """Where the layer goes on, or begins.

        A trained initial state is read at the first batch, not at `reset_state()`: it
        is then the one of now, and that batch trains it.
        """
        initial = self.get_initial_state(self.states[0].shape[0])
        # Copies: PyTorch's gradient needs what the states are changed from.
        has_begun = ops.copy(self.has_begun)
        states = [
            ops.where(has_begun, ops.copy(ops.cast(carried, start.dtype)), start)
            for carried, start in zip(self.states, tree.flatten(initial), strict=True)
        ]
        return tree.pack_sequence_as(initial, states)

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        """Gives the shape of the output, with the units as the last axis."""
        return tuple(self.layer.compute_output_shape(input_shape)[0])
