"""Initializer for the bias of an LSTM."""

from typing import Any

import keras
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_finite


@keras.saving.register_keras_serializable(package="keras_ortho")
class ForgetBias(keras.initializers.Initializer):
    """Bias initializer for an LSTM: one value for the forget gates, zero elsewhere.

    Use it with `keras.layers.LSTM(..., unit_forget_bias=False)`, whose bias contains
    those of the input gates, the forget gates, the cells and the output gates, in this
    order. The higher the value, the longer a cell remembers at first: at each step, its
    gate keeps `sigmoid(value)` of the cell state, 0.98 at 4 and 0.02 at -4.

    Args:
        value: Value for the forget gates, finite. Default: 1.

    Raises:
        ValueError: If the value is not finite.

    Example:
    >>> ForgetBias(-4.0)((8,))
    [0, 0, -4, -4, 0, 0, 0, 0]
    """

    def __init__(self, value: float = 1.0) -> None:
        self.value = check_finite("value", value)

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        """Returns the initial bias.

        Args:
            shape: `(4 n,)`.
            dtype: Floating-point dtype. Default: that of Keras.

        Returns:
            Tensor of that shape and dtype.

        Raises:
            ValueError: If the shape is not that of the bias of an LSTM.
        """
        if len(shape) != 1 or shape[0] % 4:
            raise ValueError(
                "`shape` must be that of the bias of an LSTM, (4 n,). "
                f"Received: shape={shape}"
            )
        gate = (shape[0] // 4,)
        zeros = ops.zeros(gate, dtype=dtype)
        forget = ops.full(gate, self.value, dtype=zeros.dtype)
        return ops.concatenate([zeros, forget, zeros, zeros])

    def get_config(self) -> dict[str, Any]:
        """Returns the config of the initializer."""
        return {"value": self.value}
