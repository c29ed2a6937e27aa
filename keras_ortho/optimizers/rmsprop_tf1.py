"""RMSprop as in TensorFlow 1, which the papers used."""

from typing import Any

import keras

from keras_ortho.backend.replicas import clip_over_replicas
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_fraction, check_number


@keras.saving.register_keras_serializable(package="keras_ortho")
class RMSpropTF1(keras.optimizers.RMSprop):
    """RMSprop whose accumulator starts at 1, as in TensorFlow 1.

    The update is `v <- rho v + (1 - rho) g^2`, `w <- w - lr g / sqrt(v + eps)`.
    Keras starts `v` at 0, so that with `rho=0.9` its first step changes every entry by
    `3.16 lr`, whatever the gradient. Here, the first steps are about `lr g`.

    Args:
        learning_rate: Learning rate, a float or a schedule. Default: 0.001.
        rho: Decay rate of the accumulator. Default: 0.9.
        momentum: Momentum. Default: 0.
        epsilon: Number added to the accumulator inside the square root. Default: 1e-10.
        centered: Whether to subtract the squared mean gradient. Default: `False`.
        initial_accumulator_value: Initial value of the accumulator. Default: 1.
        **kwargs: Other arguments of `keras.optimizers.RMSprop`.

    Raises:
        ValueError: If an argument is out of range.

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
        """Creates the optimizer variables of one slot."""
        if name == "velocity":
            initializer = keras.initializers.Constant(self.initial_accumulator_value)
        return super().add_optimizer_variables(trainable_variables, name, initializer)

    def apply(self, grads: list[Any], trainable_variables: Any = None) -> None:
        """Updates the variables with their gradients."""
        super().apply(clip_over_replicas(self, grads), trainable_variables)

    def get_config(self) -> dict[str, Any]:
        """Returns the config of the optimizer."""
        return {
            **super().get_config(),
            "initial_accumulator_value": self.initial_accumulator_value,
        }
