"""Regularizers of the papers."""

from typing import Any

import keras
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_number


@keras.saving.register_keras_serializable(package="keras_ortho")
class UnitRadii(keras.regularizers.Regularizer):
    """Keeps the radii of the nnRNN near one: `strength sum_j (gamma_j - 1)^2`.

    Args:
        strength: Factor `delta`, at least 0. The paper uses 1e-4 for copying and text,
            and 0.1 for pixels. Default: 1e-4.

    Raises:
        ValueError: If `strength` is negative or not finite.

    Example:
    >>> UnitRadii(0.1)(np.array([1.0, 3.0]))
    0.4

    Reference:
    [Kerg et al., 2019](https://arxiv.org/abs/1905.12080), section 3
    """

    def __init__(self, strength: float = 1e-4) -> None:
        self.strength = check_number("strength", strength)

    def __call__(self, radii: Tensor) -> Tensor:
        """Computes the penalty of radii of any shape, a scalar."""
        return self.strength * ops.sum(ops.square(radii - 1.0))

    def get_config(self) -> dict[str, Any]:
        """Returns the config of the regularizer."""
        return {"strength": self.strength}
