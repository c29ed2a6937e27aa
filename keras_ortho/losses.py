"""Losses for padded sequences: mean squared error of frames, SI-SDR of waveforms."""

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.replicas import share_among_replicas
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check, check_fits, check_real_tensor
from keras_ortho.keras_internals import get_keras_mask


def flatten_frames(
    y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None, dtype: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the frames of a batch, `[frames, bins]`, and weights, `[frames]`."""
    mask = get_keras_mask(y_pred)
    y_true, y_pred = _real_pair(y_true, y_pred, dtype)
    weights = _joined_weights(y_pred[..., 0], mask, sample_weight)
    shape = (-1, y_pred.shape[-1])
    frames = (ops.reshape(y, shape) for y in (y_true, y_pred))
    return *frames, ops.reshape(weights, (-1,))


def _real_pair(y_true: Tensor, y_pred: Tensor, dtype: str) -> tuple[Tensor, Tensor]:
    check_real_tensor("y_true", y_true)
    check_real_tensor("y_pred", y_pred)
    y_true = ops.convert_to_tensor(y_true, dtype=dtype)
    y_pred = ops.convert_to_tensor(y_pred, dtype=dtype)
    check_fits("y_true", y_true, y_pred.shape, "`y_pred`")
    return y_true, y_pred


def _joined_weights(like: Tensor, *factors: Tensor | None) -> Tensor:
    """Returns the product of a mask and weights, either of which may be `None`."""
    weights = ops.ones_like(like)
    for factor in factors:
        if factor is not None:
            factor = ops.convert_to_tensor(factor, dtype=like.dtype)
            check_fits("sample_weight", factor, like.shape, "`y_pred`")
            weights = weights * factor
    return weights


class _FrameMSE(keras.losses.MeanSquaredError):
    """Mean squared error over the frames from `flatten_frames`."""

    def __call__(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Computes the mean over a batch; see the class for the arguments."""
        frames = flatten_frames(y_true, y_pred, sample_weight, self.dtype)
        loss = super().__call__(*frames)
        if self.reduction == "sum_over_batch_size":
            return loss
        return loss * share_among_replicas(ops.sum(frames[-1]))

    def get_config(self) -> dict[str, str]:
        return {"name": self.name, "dtype": self.dtype}


@keras.saving.register_keras_serializable(package="keras_ortho")
class ValidFrameMSE(_FrameMSE):
    """Mean squared error over all frames except padding.

    Pass the mask as `sample_weight`, or let a Keras mask reach the output; with both,
    the weight of a frame is their product. The `loss` that `fit` reports is the mean of
    the batch means; `keras_ortho.metrics.ValidFrameMSE` is the mean over all frames.

    Args:
        name, dtype: As for Keras's losses.

    Call arguments:
        y_true: Targets of shape `[batch, time, bins]`.
        y_pred: Predictions of the same shape.
        sample_weight: Weights of shape `[batch, time]`: 1 for frames, 0 for padding.

    Example:
    >>> y_true, y_pred = np.zeros((1, 4, 2)), np.full((1, 4, 2), 3.0)
    >>> loss = ValidFrameMSE()
    >>> float(loss(y_true, y_pred, sample_weight=np.array([[1, 1, 1, 0]])))
    9.0
    """

    def __init__(self, name: str = "valid_frame_mse", dtype: str | None = None) -> None:
        super().__init__(reduction="mean_with_sample_weight", name=name, dtype=dtype)


@keras.saving.register_keras_serializable(package="keras_ortho")
class PaddedFrameMSE(_FrameMSE):
    """Mean squared error over all frames including padding, whose error is zero.

    Wisdom et al. (2016) report it. The call arguments are those of `ValidFrameMSE`.

    Args:
        name, dtype: As for Keras's losses.

    Example:
    >>> y_true, y_pred = np.zeros((1, 4, 2)), np.full((1, 4, 2), 3.0)
    >>> loss = PaddedFrameMSE()
    >>> float(loss(y_true, y_pred, sample_weight=np.array([[1, 1, 1, 0]])))
    6.75
    """

    def __init__(
        self, name: str = "padded_frame_mse", dtype: str | None = None
    ) -> None:
        super().__init__(reduction="sum_over_batch_size", name=name, dtype=dtype)


@keras.saving.register_keras_serializable(package="keras_ortho")
class NegativeSISDR(keras.losses.Loss):
    """Negative scale-invariant signal-to-distortion ratio of waveforms, in dB.

    The loss is the mean over the waveforms of a batch that contain a valid sample.
    Energies 120 dB below the reference's count as silence, as do errors 120 dB below
    the prediction: the loss is at least -120 dB, and its gradient is finite.

    Args:
        zero_mean: Whether to subtract the means first. Default: `False`.
        name, dtype: As for Keras's losses. It computes at least in float32.

    Call arguments:
        y_true: References of shape `[batch, samples]`.
        y_pred: Predictions of the same shape.
        sample_weight: Weights of the same shape: 1 for samples, 0 for padding.

    Example:
    >>> y_true = np.array([[3.0, -0.5, 2.0, 7.0]])
    >>> loss = NegativeSISDR()
    >>> round(float(loss(y_true, np.array([[2.5, 0.0, 2.0, 8.0]]))), 2)
    -18.4

    Reference:
    - [Le Roux et al., 2019](https://arxiv.org/abs/1811.02508)
    """

    def __init__(
        self,
        zero_mean: bool = False,
        name: str = "negative_si_sdr",
        dtype: str | keras.DTypePolicy | None = None,
    ) -> None:
        policy = keras.dtype_policies.get(dtype or keras.config.floatx())
        wide = wide_dtype(policy.compute_dtype)
        super().__init__(reduction="mean_with_sample_weight", name=name, dtype=wide)
        self.zero_mean = zero_mean

    def __call__(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Computes the mean over a batch; see the class for the arguments."""
        mask = get_keras_mask(y_pred)
        y_true, y_pred = _real_pair(y_true, y_pred, self.dtype)
        shape = tuple(y_pred.shape)
        check(len(shape) == 2, "y_pred", "have the shape (batch, samples)", shape)
        weights = _joined_weights(y_pred, mask, sample_weight)
        y_true, y_pred = y_true * weights, y_pred * weights
        if self.zero_mean:
            count = ops.maximum(ops.sum(weights, axis=-1, keepdims=True), 1.0)
            y_true, y_pred = (
                x - weights * ops.sum(x, axis=-1, keepdims=True) / count
                for x in (y_true, y_pred)
            )
        counts = ops.cast(ops.any(weights > 0, axis=-1), self.dtype)
        loss = super().__call__(y_true, y_pred, counts)
        return loss * share_among_replicas(ops.sum(counts))

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Computes the loss of each waveform, `[batch]`, without subtracting a mean."""
        energy = ops.sum(y_true * y_true, axis=-1, keepdims=True)
        # The energy assigned to silence, which avoids divisions by zero.
        small = 1e-12 * energy + float(np.sqrt(np.finfo(self.dtype).tiny))
        share = ops.sum(y_pred * y_true, axis=-1, keepdims=True) / (energy + small)
        target, small = share * y_true, small[..., 0]
        kept = ops.sum(target * target, axis=-1)
        lost = ops.sum(ops.square(y_pred - target), axis=-1)
        # Without the maximum, the loss would fall further for louder predictions.
        lost = lost + ops.maximum(small, 1e-12 * kept)
        kept = kept + small
        return (10 / math.log(10)) * (ops.log(lost) - ops.log(kept))

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that recreate the loss."""
        return {"zero_mean": self.zero_mean, "name": self.name, "dtype": self.dtype}
