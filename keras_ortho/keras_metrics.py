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

    Each character has the same weight. In Keras's metric each row of a batch has the
    same weight, whatever its length.

    Args:
        from_logits: Whether the outputs are logits rather than probabilities.
            Default: `True`.
        name: Name of the metric. Default: `"bits_per_character"`.
        dtype: The dtype to compute in. Default: Keras's `floatx`.

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
        """Adds a batch.

        Args:
            y_true: The characters, integers of shape `(batch, time)`.
            y_pred: Tensor of shape `(batch, time, classes)`. If it carries a Keras
                mask, masked characters do not count.
            sample_weight: Weights of shape `(batch, time)` or `(batch,)`. Default:
                `None`.
        """
        y_pred = ops.convert_to_tensor(y_pred)
        mask = get_keras_mask(y_pred)
        if sample_weight is not None or mask is not None:
            given = 1.0 if sample_weight is None else sample_weight
            weights = ops.convert_to_tensor(given, dtype=self.dtype)
            characters = ops.shape(y_pred)[:-1]
            while len(weights.shape) < len(characters):
                weights = ops.expand_dims(weights, -1)
            weights = ops.broadcast_to(weights, characters)
            if mask is not None:
                weights = weights * ops.cast(mask, weights.dtype)
            sample_weight = ops.reshape(weights, (-1,))
        super().update_state(
            ops.reshape(y_true, (-1,)),
            ops.reshape(y_pred, (-1, y_pred.shape[-1])),
            sample_weight,
        )

    def result(self) -> Tensor:
        """Returns the bits per character so far.

        Returns:
            A scalar tensor; 0 before the first batch.
        """
        return super().result() / math.log(2)

    def get_config(self) -> dict[str, Any]:
        """Returns the config, from which `from_config` makes an equal metric."""
        config = super().get_config()
        return {name: config[name] for name in ("from_logits", "name", "dtype")}


@keras.saving.register_keras_serializable("keras_ortho", "metrics.ErrorRate")
class ErrorRate(keras.metrics.SparseCategoricalAccuracy):
    """Fraction of the examples whose class is not that of the largest output.

    It is finite even if the outputs of a network are not, so it can rank the epochs and
    the settings of a run where a loss cannot.

    Args:
        name: Name of the metric. Default: `"error_rate"`.
        dtype: The dtype to compute in. Default: Keras's `floatx`.

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
        """Returns the error rate so far.

        Returns:
            A scalar tensor; 1 before the first batch.
        """
        return 1.0 - super().result()


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
