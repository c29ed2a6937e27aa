"""A wrapper that carries the state of a recurrent layer from batch to batch."""

from typing import Any

import keras
from keras import ops, tree

from keras_ortho.backend.types import Tensor
from keras_ortho.keras_internals import call_is_training


@keras.saving.register_keras_serializable(package="keras_ortho")
class CarriedState(keras.layers.Wrapper):
    """Runs a recurrent layer from the final state of the previous batch.

    Like the `stateful` argument of Keras's recurrent layers, this serves truncated
    back-propagation through a long text: the state carries over, the gradient does
    not. But the states are non-trainable weights: they persist within `fit` on every
    backend (`stateful` loses them on JAX), and they are saved. Each batch updates them;
    only `reset_state()` resets them: see `keras_ortho.training_callbacks.ResetStates`.

    Args:
        layer: Recurrent layer of Keras or of this package, with
            `return_sequences=True`, `return_state=True` and `stateful=False`.
        **kwargs: Base layer keyword arguments, such as `name` and `dtype`.

    Call arguments:
        sequences: Tensor of shape `(batch, time, m)`, with a known batch size.
        mask: Boolean tensor of shape `(batch, time)`, or `None`.
        training: Whether to run in training mode, with dropout.

    Output shape:
        `(batch, time, n)`.

    Weights:
        Those of the layer, and the non-trainable `state_0`, `state_1`, ... for the
        states of the layer, and `has_begun`, a boolean.

    Raises:
        ValueError: If `layer` is another, the batch size is unknown, or it changes.

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
        # `Bidirectional` has these attributes too, but no `get_initial_state`.
        if received != wanted or not hasattr(layer, "get_initial_state"):
            raise ValueError(
                "`layer` must be a recurrent layer with `return_sequences=True`, "
                "`return_state=True` and `stateful=False`. "
                f"Received: layer={layer} with {received}"
            )
        super().__init__(layer, **kwargs)
        self.supports_masking = True

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Builds the layer and creates the states."""
        batch_size = input_shape[0]
        if batch_size is None:
            raise ValueError(
                "The batch size must be known: give it as `keras.Input(batch_shape="
                f"(32, 50, 3))`. Received: input_shape={input_shape}"
            )
        self._batch_size = batch_size
        if not self.layer.built:
            self.layer.build(input_shape)
        initial = tree.flatten(self.get_initial_state(batch_size))
        fixed: dict[str, Any] = {"initializer": "zeros", "trainable": False}
        self.states = [
            self.add_weight(x.shape, name=f"state_{i}", autocast=False, **fixed)
            for i, x in enumerate(initial)
        ]
        self.has_begun = self.add_weight((), name="has_begun", dtype="bool", **fixed)
        self.built = True
        self.reset_state()

    def get_initial_state(self, batch_size: int) -> Any:
        """Returns the states that `reset_state()` restores, for a batch size."""
        return self.layer.get_initial_state(batch_size)

    def reset_state(self) -> None:
        """Resets the states to zero, or to what is then the trained initial state."""
        if self.built:
            self._carry(self.get_initial_state(self._batch_size))
            self.has_begun.assign(False)

    def _carry(self, states: Any) -> None:
        for variable, value in zip(self.states, tree.flatten(states), strict=True):
            variable.assign(ops.cast(value, variable.dtype))

    def call(
        self, sequences: Tensor, mask: Tensor | None = None, training: bool = False
    ) -> Tensor:
        """Runs the layer and stores its last states."""
        given = sequences.shape[0]
        if given is None and keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            shape = (self._batch_size, *sequences.shape[1:])
            sequences = tf.ensure_shape(sequences, shape)
        # When JAX exports, an unknown size is symbolic.
        elif isinstance(given, int) and given != self._batch_size:
            raise ValueError(
                f"The batch must have {self._batch_size} sequences, as when the layer "
                "was built: leave out a last batch of fewer. Received: sequences of "
                f"shape {tuple(sequences.shape)}"
            )
        # The initial state is read now, so that the first batch trains it.
        initial = self.get_initial_state(self._batch_size)
        # Copies, because PyTorch's gradient needs the values before `assign`.
        has_begun = ops.copy(self.has_begun)
        states = [
            ops.where(has_begun, ops.copy(ops.cast(carried, start.dtype)), start)
            for carried, start in zip(self.states, tree.flatten(initial), strict=True)
        ]
        outputs, *last = self.layer(
            sequences,
            initial_state=tree.pack_sequence_as(initial, states),
            mask=mask,
            training=call_is_training(training),
        )
        self._carry(last)
        self.has_begun.assign(True)
        return outputs

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        """Returns the shape of the output sequences."""
        return tuple(self.layer.compute_output_shape(input_shape)[0])
