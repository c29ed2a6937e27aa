"""modReLU: the activation that orthogonal and unitary networks use."""

from typing import Any

import keras
from keras import ops

from keras_ortho.backend.types import Tensor


def modrelu(inputs: Tensor, bias: Tensor) -> Tensor:
    """ModReLU of real numbers, `sign(z) relu(|z| + b)`.

    Keeps the sign and shifts the absolute value: with a negative bias values
    near zero become zero, with a positive one they are pushed away from it. At
    `z = 0` it is 0, and its gradient is 0 there and where `|z| + b = 0`.

    Args:
        inputs: Tensor of shape `(..., n)`.
        bias: Tensor of shape `(n,)`.

    Returns:
        Tensor of the shape and dtype of `inputs`.

    Example:
    >>> modrelu(np.array([-2.0, 0.5, 3.0]), np.array([-1.0, -1.0, 1.0]))
    [-1, 0, 4]

    Reference:

    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
      equation 8, after
      [Arjovsky et al., 2016](https://proceedings.mlr.press/v48/arjovsky16.html)
    """
    sign = ops.stop_gradient(ops.sign(inputs))
    return sign * ops.relu(sign * inputs + bias)


@keras.saving.register_keras_serializable(package="keras_ortho")
class ModReLU(keras.layers.Layer):
    """modReLU with a trainable bias for each unit, `sign(z) relu(|z| + b)`.

    Args:
        bias_initializer: Initializer of the bias. Default: `"zeros"`, with which
            the layer is the identity until the bias has been trained.
        bias_regularizer: Regularizer of the bias. Default: `None`.
        bias_constraint: Constraint of the bias. Default: `None`.
        **kwargs: Keras's arguments of a layer, such as `name` and `dtype`.

    Input shape:
        `(..., n)`, with `n` known. The bias has shape `(n,)`.

    Output shape:
        The input shape.

    Raises:
        ValueError: In `build`, if the last axis of the input is not known.

    Example:
    >>> layer = ModReLU(bias_initializer=keras.initializers.Constant(-1.0))
    >>> layer(np.array([[-2.0, 0.5, 3.0]]))
    [[-1, 0, 2]]

    Reference:

    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
      equation 8
    """

    def __init__(
        self,
        bias_initializer: Any = "zeros",
        bias_regularizer: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.bias_constraint = keras.constraints.get(bias_constraint)
        self.supports_masking = True

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Creates the bias.

        Args:
            input_shape: Shape of the inputs.
        """
        if input_shape[-1] is None:
            raise ValueError(
                "The last axis of the input of `ModReLU` must be known. "
                f"Received: input_shape={input_shape}"
            )
        self.bias = self.add_weight(
            shape=(input_shape[-1],),
            name="bias",
            initializer=self.bias_initializer,
            regularizer=self.bias_regularizer,
            constraint=self.bias_constraint,
        )

    def call(self, inputs: Tensor) -> Tensor:
        """Applies the activation.

        Args:
            inputs: Tensor of shape `(..., n)`.

        Returns:
            Tensor of the same shape.
        """
        return modrelu(inputs, self.bias)

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        """Gives the shape of the output.

        Args:
            input_shape: Shape of the inputs.

        Returns:
            The same shape.
        """
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Gives the arguments that make an equal layer.

        Returns:
            A dictionary that JSON can hold.
        """
        return {
            **super().get_config(),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
            "bias_regularizer": keras.regularizers.serialize(self.bias_regularizer),
            "bias_constraint": keras.constraints.serialize(self.bias_constraint),
        }
