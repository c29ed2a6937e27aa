"""A wrapper that trains the initial state of a recurrent layer."""

import copy
from typing import Any

import keras
from keras import ops, tree

from keras_ortho import initializers
from keras_ortho.backend.types import Tensor
from keras_ortho.keras_internals import call_is_training, get_keras_mask


@keras.saving.register_keras_serializable(package="keras_ortho")
class TrainedInitialState(keras.layers.Wrapper):
    """Runs a recurrent layer from a trained initial state.

    The state before the first step is a trained vector shared by all sequences; an LSTM
    has two, `h_0` and `c_0`. The layers of this package have an argument for this,
    `trainable_initial_state`.

    Args:
        layer: Recurrent layer with `stateful=False`, and, of this package, with
            `trainable_initial_state=False`, which is not the default of `ORNN`.
        initializer: Initializer of each state, such as `"state_uniform"`. Default:
            `"zeros"`.
        **kwargs: Base layer keyword arguments, such as `name` and `dtype`.

    Call arguments:
        sequences: Tensor of shape `(batch, time, m)`.
        initial_state: List of states to use instead of the trained ones. Default:
            `None`.
        mask: Boolean tensor of shape `(batch, time)`, or `None`.
        training: Whether to run in training mode, with dropout.

    Output shape:
        That of the layer.

    Weights:
        Those of the layer, and `initial_state_0`, `initial_state_1`, ... of shape
        `(n,)`, one for each state of the layer.

    Raises:
        ValueError: If `layer` is not a recurrent layer, or is stateful.

    Example:
    >>> layer = TrainedInitialState(keras.layers.LSTM(8))
    >>> layer(np.zeros((32, 50, 3))).shape
    (32, 8)

    Reference:
    - [Mhammedi et al., 2017](https://proceedings.mlr.press/v70/mhammedi17a.html)
    """

    def __init__(
        self, layer: keras.layers.Layer, initializer: Any = "zeros", **kwargs: Any
    ) -> None:
        # A cell also has `get_initial_state`, but not `stateful`.
        is_layer = hasattr(layer, "get_initial_state") and hasattr(layer, "stateful")
        if not is_layer or layer.stateful:
            raise ValueError(
                "`layer` must be a recurrent layer that is not stateful. "
                f"Received: layer={layer}"
            )
        super().__init__(layer, **kwargs)
        self.initializer = initializers.get(initializer)
        self.supports_masking = True
        # What `Bidirectional` asks a recurrent layer for.
        self.return_sequences = layer.return_sequences
        self.return_state = layer.return_state
        self.go_backwards = layer.go_backwards
        self.stateful = False

    def build(
        self, sequences_shape: tuple[int | None, ...], initial_state_shape: Any = None
    ) -> None:
        """Builds the layer and creates the initial states."""
        if not self.layer.built:
            self.layer.build(sequences_shape)
        make = self.initializer
        self.initial_states = []
        for number, state in enumerate(tree.flatten(self.layer.get_initial_state(1))):
            shape = tuple(state.shape[1:])
            initializers.check_array("initializer", make, shape)
            name = f"initial_state_{number}"
            weight = self.add_weight(shape=shape, initializer=make, name=name)
            self.initial_states.append(weight)
            make = initializers.independent(make)
        self.built = True

    def get_initial_state(self, batch_size: int) -> list[Any]:
        """Returns the trained states, repeated for each of `batch_size` sequences."""
        structure = self.layer.get_initial_state(1)
        states = (ops.cast(state, self.compute_dtype) for state in self.initial_states)
        return tree.pack_sequence_as(
            structure, [ops.broadcast_to(s, (batch_size, *s.shape)) for s in states]
        )

    def call(
        self,
        sequences: Tensor,
        initial_state: Any = None,
        mask: Tensor | None = None,
        training: bool = False,
    ) -> Any:
        """Runs the layer."""
        if mask is None:  # With an initial state, Keras does not pass it.
            mask = get_keras_mask(sequences)
        if initial_state is None:
            initial_state = self.get_initial_state(ops.shape(sequences)[0])
        return self.layer(
            sequences,
            initial_state=initial_state,
            mask=mask,
            training=call_is_training(training),
        )

    def compute_mask(self, inputs: Tensor, mask: Tensor | None = None) -> Any:
        """Returns the mask of the layer's output."""
        return self.layer.compute_mask(inputs, mask)

    def compute_output_shape(
        self, sequences_shape: tuple[int | None, ...], initial_state_shape: Any = None
    ) -> Any:
        """Returns the shape of the layer's output."""
        return self.layer.compute_output_shape(sequences_shape)

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> "TrainedInitialState":
        """Creates a layer from its config, to which `Bidirectional` may have added."""
        config = copy.deepcopy(config)
        if "go_backwards" in config:
            config["layer"]["config"]["go_backwards"] = config.pop("go_backwards")
        return super().from_config(config, custom_objects)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that recreate the layer."""
        initializer = keras.initializers.serialize(self.initializer)
        return super().get_config() | {"initializer": initializer}
