"""RMSprop as TensorFlow 1 ran it, and so as the papers did."""

from typing import Any

import keras

from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_fraction, check_number


@keras.saving.register_keras_serializable(package="keras_ortho")
class RMSpropTF1(keras.optimizers.RMSprop):
    """RMSprop with the accumulator starting at 1, as in TensorFlow 1.

    The update is `v <- rho v + (1 - rho) g^2`, `w <- w - lr g / sqrt(v + eps)`.
    Keras starts `v` at 0, so that its first steps have the length `3.16 lr`
    whatever the gradient. Here they are about `lr g`: the rate warms up by itself
    until `rho^k` falls below `g^2`, over some hundred steps.

    Args:
        learning_rate: Rate, a float or a schedule. Default: 0.001.
        rho: Decay of the accumulator. Default: 0.9.
        momentum: Momentum. Default: 0.
        epsilon: Added to the accumulator inside the root. Default: 1e-10.
        centered: Whether to subtract the square of the mean gradient. Default:
            `False`.
        initial_accumulator_value: Where the accumulator starts. Default: 1.
        **kwargs: The other arguments of `keras.optimizers.RMSprop`.

    Raises:
        ValueError: If `initial_accumulator_value` or `epsilon` is negative, or `rho`
            not a fraction.

    Example:
    >>> optimizer = RMSpropTF1(learning_rate=1e-4)

    Reference:

    - `tf.compat.v1.train.RMSPropOptimizer`, which Helfrich et al., 2018, used
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-10,
        centered: bool = False,
        initial_accumulator_value: float = 1.0,
        **kwargs: Any,
    ) -> None:
        initial = check_number("initial_accumulator_value", initial_accumulator_value)
        rho, epsilon = check_fraction("rho", rho), check_number("epsilon", epsilon)
        super().__init__(
            learning_rate=learning_rate,
            rho=rho,
            momentum=momentum,
            epsilon=epsilon,
            centered=centered,
            **kwargs,
        )
        self.initial_accumulator_value = initial

    def add_optimizer_variables(
        self, trainable_variables: list[Any], name: Any, initializer: Any = "zeros"
    ) -> list[Tensor]:
        """Creates the slots of the variables.

        Args:
            trainable_variables: The variables.
            name: Name of the slot, or a list of them.
            initializer: Initializer of the slot; the accumulator, which Keras
                calls `"velocity"`, has its own.

        Returns:
            The slots, a list.
        """
        if name == "velocity":
            initializer = keras.initializers.Constant(self.initial_accumulator_value)
        return super().add_optimizer_variables(trainable_variables, name, initializer)

    def get_config(self) -> dict[str, Any]:
        """Gives the arguments that make an equal optimizer."""
        return {
            **super().get_config(),
            "initial_accumulator_value": self.initial_accumulator_value,
        }
