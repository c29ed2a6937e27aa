"""Keras metrics of characters, classes and frames, for `model.compile`."""

import math
from typing import Any

import keras
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.keras_internals import get_keras_mask
from keras_ortho.losses import flatten_frames


@keras.saving.register_keras_serializable("keras_ortho", "metrics.BitsPerCharacter")
class BitsPerCharacter(keras.metrics.SparseCategoricalCrossentropy):
    """Mean cross-entropy in bits over all characters of all batches.

    In Keras's metric each row of a batch has the same weight, whatever its length.

    Args:
        from_logits: Whether the outputs are logits, not probabilities. Default: `True`.
        name, dtype: As for Keras's metrics.

    Example:
    >>> metric = BitsPerCharacter()
    >>> metric.update_state(np.zeros((2, 5)), np.zeros((2, 5, 8)))
    >>> float(metric.result())
    3.0
    """

    def __init__(
        self,
        from_logits: bool = True,
        name: str = "bits_per_character",
        dtype: str | None = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype, from_logits=from_logits)

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        """Adds characters `(batch, time)` and outputs `(batch, time, classes)`.

        Weights are `(batch, time)` or `(batch,)`; a mask of the outputs counts, too.
        """
        y_pred = ops.convert_to_tensor(y_pred)
        weights = ops.ones_like(y_pred[..., 0], dtype=self.dtype)
        for factor in (get_keras_mask(y_pred), sample_weight):
            if factor is not None:
                factor = ops.convert_to_tensor(factor, dtype=self.dtype)
                while len(factor.shape) < len(weights.shape):
                    factor = ops.expand_dims(factor, -1)
                weights = weights * factor
        super().update_state(
            ops.reshape(y_true, (-1,)),
            ops.reshape(y_pred, (-1, y_pred.shape[-1])),
            ops.reshape(weights, (-1,)),
        )

    def result(self) -> Tensor:
        """Returns the bits per character so far, a scalar; 0 before the first batch."""
        return super().result() / math.log(2)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that recreate the metric."""
        config = super().get_config()
        return {name: config[name] for name in ("from_logits", "name", "dtype")}


@keras.saving.register_keras_serializable("keras_ortho", "metrics.ErrorRate")
class ErrorRate(keras.metrics.SparseCategoricalAccuracy):
    """Fraction of the examples whose class is not that of the largest output.

    It is finite even if the outputs of a network are not.

    Args:
        name, dtype: As for Keras's metrics.

    Example:
    >>> metric = ErrorRate()
    >>> metric.update_state([0, 0, 1, 1], np.array([[2.0, 1.0]] * 4))
    >>> float(metric.result())
    0.5
    """

    def __init__(self, name: str = "error_rate", dtype: str | None = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self._direction = "down"

    def result(self) -> Tensor:
        """Returns the error rate so far, a scalar; 1 before the first batch."""
        return 1.0 - super().result()


@keras.saving.register_keras_serializable("keras_ortho", "metrics.ValidFrameMSE")
class ValidFrameMSE(keras.metrics.MeanSquaredError):
    """Mean squared error over all frames of all batches that are not padding.

    Pass it to `compile` in `weighted_metrics`, as `metrics` do not get the weights.

    Args:
        name, dtype: As for Keras's metrics.

    Example:
    >>> metric = ValidFrameMSE()
    >>> y_true, y_pred = np.zeros((1, 4, 2)), np.full((1, 4, 2), 3.0)
    >>> metric.update_state(y_true, y_pred, sample_weight=np.array([[1, 1, 1, 0]]))
    >>> float(metric.result())
    9.0
    """

    def __init__(self, name: str = "valid_frame_mse", dtype: str | None = None) -> None:
        super().__init__(name=name, dtype=dtype)

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        """Adds a batch; the arguments are those of `losses.ValidFrameMSE`."""
        super().update_state(*flatten_frames(y_true, y_pred, sample_weight, self.dtype))


@keras.saving.register_keras_serializable("keras_ortho", "metrics.PaddedFrameMSE")
class PaddedFrameMSE(keras.metrics.Mean):
    """Mean squared error over all frames of all batches, with zero error in padding.

    Pass it to `compile` in `weighted_metrics`, as `ValidFrameMSE`.

    Args:
        name, dtype: As for Keras's metrics.

    Example:
    >>> metric = PaddedFrameMSE()
    >>> y_true, y_pred = np.zeros((1, 4, 2)), np.full((1, 4, 2), 3.0)
    >>> metric.update_state(y_true, y_pred, sample_weight=np.array([[1, 1, 1, 0]]))
    >>> float(metric.result())
    6.75
    """

    def __init__(
        self, name: str = "padded_frame_mse", dtype: str | None = None
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        self._direction = "down"

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        """Adds a batch; the arguments are those of `losses.ValidFrameMSE`."""
        frames = flatten_frames(y_true, y_pred, sample_weight, self.dtype)
        super().update_state(frames[2] * keras.losses.mean_squared_error(*frames[:2]))
