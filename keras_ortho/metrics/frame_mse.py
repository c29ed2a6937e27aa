"""Keras metrics for the two masked mean squared errors of `keras_ortho.losses`."""

import keras

from keras_ortho.backend.types import Tensor
from keras_ortho.losses import flatten_frames


@keras.saving.register_keras_serializable("keras_ortho", "metrics.ValidFrameMSE")
class ValidFrameMSE(keras.metrics.MeanSquaredError):
    """Mean squared error over all frames of all batches that are not padding.

    Unlike in `keras.metrics.MeanSquaredError`, a frame has the same weight in a batch
    of long sequences as in one of short sequences. Pass it to `compile` in
    `weighted_metrics`; metrics in `metrics` do not get the weights.

    Args:
        name: Name of the metric. Default: `"valid_frame_mse"`.
        dtype: The dtype to compute in. Default: Keras's `floatx`.

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
        """Adds a batch.

        Args:
            y_true: `[batch, time, bins]`.
            y_pred: `[batch, time, bins]`.
            sample_weight: `[batch, time]`: 1 for a frame, 0 for padding.
        """
        super().update_state(*flatten_frames(y_true, y_pred, sample_weight, self.dtype))


@keras.saving.register_keras_serializable("keras_ortho", "metrics.PaddedFrameMSE")
class PaddedFrameMSE(keras.metrics.Mean):
    """Mean squared error over all frames of all batches, with zero error in padding.

    This is the error that Wisdom et al. (2016) report, if every batch is padded to the
    longest utterance of the split. Pass it to `compile` in `weighted_metrics`.

    Args:
        name: Name of the metric. Default: `"padded_frame_mse"`.
        dtype: The dtype to compute in. Default: Keras's `floatx`.

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
        """Adds a batch; the arguments are those of `ValidFrameMSE.update_state`."""
        y_true, y_pred, weights = flatten_frames(
            y_true, y_pred, sample_weight, self.dtype
        )
        super().update_state(weights * keras.losses.mean_squared_error(y_true, y_pred))
