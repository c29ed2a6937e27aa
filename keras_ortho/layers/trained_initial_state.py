"""A wrapper that trains the initial state of a recurrent layer."""

from typing import Any

import keras
from keras import ops, tree

from keras_ortho import initializers
from keras_ortho.backend.types import Tensor
from keras_ortho.keras_internals import call_is_training, get_keras_mask


@keras.saving.register_keras_serializable(package="keras_ortho")
class TrainedInitialState(keras.layers.Wrapper):
    """Runs a recurrent layer from a trained initial state.

    Keras's recurrent layers start from zero by default. Here the state before the first
    step is a trained vector shared by all sequences; an LSTM has two, `h_0` and `c_0`.
    The layers of this package have an argument for this, `trainable_initial_state`.

    Args:
        layer: Recurrent layer with `stateful=False`, and, of this package, with
            `trainable_initial_state=False`.
        initializer: Initializer of each state: a name such as `"state_uniform"`, or
            any argument of `keras.initializers.get`. Default: `"zeros"`.
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
        ValueError: If `layer` is not a recurrent layer, is stateful, or trains its
            initial state itself, as `ORNN` does by default.

    Example:
    >>> layer = TrainedInitialState(keras.layers.LSTM(8))
    >>> layer(np.zeros((32, 50, 3))).shape
    (32, 8)

    Reference:

    - [Mhammedi et al., 2017](https://proceedings.mlr.press/v70/mhammedi17a.html), whose
      networks train the initial state
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
        cell = getattr(layer, "cell", None)
        cells = getattr(cell, "cells", [cell])
        if any(getattr(cell, "trainable_initial_state", False) for cell in cells):
            raise ValueError(
                "`layer` must not itself train its initial state: set its "
                f"`trainable_initial_state` to `False`. Received: layer={layer}"
            )
        super().__init__(layer, **kwargs)
        self.initializer = initializers.get(initializer)
        self.supports_masking = True

    @property
    def return_sequences(self) -> bool:
        """Whether the layer returns its output at every time step."""
        return self.layer.return_sequences

    @property
    def return_state(self) -> bool:
        """Whether the layer also returns its last states."""
        return self.layer.return_state

    @property
    def go_backwards(self) -> bool:
        """Whether the layer processes the sequences backwards."""
        return self.layer.go_backwards

    @property
    def stateful(self) -> bool:
        """Whether the layer is stateful: always `False`."""
        return False

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
            weight = self.add_weight(
                shape=shape,
                name=f"initial_state_{number}",
                initializer=make,
            )
            self.initial_states.append(weight)
            make = initializers.independent(make)
        self.built = True

    def get_initial_state(self, batch_size: int) -> list[Any]:
        """Returns the trained states, repeated for each sequence.

        Args:
            batch_size: Number of sequences.

        Returns:
            List of tensors of shape `(batch_size, n)`. For stacked cells, one entry
            per cell, which may itself be a list.
        """
        states = [
            ops.broadcast_to(
                ops.cast(state, self.compute_dtype), (batch_size, *state.shape)
            )
            for state in self.initial_states
        ]
        return tree.pack_sequence_as(self.layer.get_initial_state(1), states)

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
        """Creates a layer from its config.

        `keras.layers.Bidirectional` adds `go_backwards` to the config. It is passed on
        to the wrapped layer.
        """
        config = dict(config)
        if "go_backwards" in config:
            layer = config["layer"]
            own = {**layer["config"], "go_backwards": config.pop("go_backwards")}
            config["layer"] = {**layer, "config": own}
        return super().from_config(config, custom_objects)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that recreate the layer."""
        return {
            **super().get_config(),
            "initializer": keras.initializers.serialize(self.initializer),
        }
