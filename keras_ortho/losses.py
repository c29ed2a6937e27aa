"""Losses of padded sequences: mean squared errors of frames, SI-SDR of waveforms.

Two definitions of the mean squared error are in use. A batch of `B` sequences of
different lengths `L` is padded to `T` frames of `F` bins, and `sample_weight`,
`[B, T]`, is 1 where there is a frame and 0 where there is padding. The squared errors
of the frames are divided

- by `F` times the number of frames, the sum of `L`: `ValidFrameMSE`,
- by `F` times the number of frames *and* padding, `B T`: `PaddedFrameMSE`. Wisdom et
  al. (2016) compute their TIMIT errors in this way, padded to the longest utterance
  of the split. The value depends on the padding: it is `mean(L) / T` times the
  other.
"""

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.replicas import share_among_replicas
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_fits, check_real_tensor
from keras_ortho.keras_internals import get_keras_mask


def flatten_frames(
    y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None, dtype: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Frames of all sequences in a row, with the weight of each.

    Args:
        y_true: `[batch, time, bins]`.
        y_pred: `[batch, time, bins]`, which may carry a Keras mask.
        sample_weight: `[batch, time]`, or `None`.
        dtype: The dtype of the results.

    Returns:
        `(y_true, y_pred, weights)`: `[frames, bins]` twice and `[frames]`, the
        product of mask and `sample_weight`. The mask is no longer on `y_pred`.

    Raises:
        ValueError: If `y_true` has another shape than `y_pred`, there is not one
            weight for each frame, or one of them is complex.
    """
    check_real_tensor("y_true", y_true)
    check_real_tensor("y_pred", y_pred)
    y_true = ops.convert_to_tensor(y_true, dtype=dtype)
    mask = get_keras_mask(y_pred)
    y_pred = ops.convert_to_tensor(y_pred, dtype=dtype)
    if not len(y_pred.shape):
        raise ValueError("`y_pred` must have an axis of bins. Received: a scalar")
    check_fits("y_true", y_true, y_pred.shape, "`y_pred`")
    weights = _joined_weights(y_pred[..., 0], mask, sample_weight)
    bins = y_pred.shape[-1]
    return (
        ops.reshape(y_true, (-1, bins)),
        ops.reshape(y_pred, (-1, bins)),
        ops.reshape(weights, (-1,)),
    )


def _joined_weights(like: Tensor, *factors: Tensor | None) -> Tensor:
    """The product of a mask and weights, of which either may be missing."""
    weights = ops.ones_like(like)
    for factor in factors:
        if factor is not None:
            factor = ops.convert_to_tensor(factor, dtype=like.dtype)
            check_fits("sample_weight", factor, like.shape, "`y_pred`")
            weights = weights * factor
    return weights


class _FrameMSE(keras.losses.MeanSquaredError):
    """Keras's mean squared error over frames that `flatten_frames` has laid out."""

    def get_config(self) -> dict[str, str]:
        return {"name": self.name, "dtype": self.dtype}


@keras.saving.register_keras_serializable(package="keras_ortho")
class ValidFrameMSE(_FrameMSE):
    """Mean squared error over the frames that are no padding.

    Give the mask as `sample_weight`, or let a Keras mask reach the output; with
    both a frame counts by their product. The `loss` that `fit` reports is a mean of
    the batches' means: `keras_ortho.metrics.ValidFrameMSE` among `weighted_metrics`
    is the mean over all frames. On several devices a batch's mean is over the frames of
    all of them.

    Args:
        name: Default: `"valid_frame_mse"`.
        dtype: The dtype to compute in. Default: Keras's `floatx`.

    Call arguments:
        y_true: `[batch, time, bins]`.
        y_pred: `[batch, time, bins]`.
        sample_weight: `[batch, time]`: 1 for a frame, 0 for padding.

    Example:
    >>> y_true, y_pred = np.zeros((1, 4, 2)), np.full((1, 4, 2), 3.0)
    >>> loss = ValidFrameMSE()
    >>> float(loss(y_true, y_pred, sample_weight=np.array([[1, 1, 1, 0]])))
    9.0
    """

    def __init__(self, name: str = "valid_frame_mse", dtype: str | None = None) -> None:
        super().__init__(reduction="mean_with_sample_weight", name=name, dtype=dtype)

    def __call__(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Computes the mean of a batch; for the arguments see the class."""
        frames = flatten_frames(y_true, y_pred, sample_weight, self.dtype)
        loss = super().__call__(*frames)
        return loss * share_among_replicas(ops.sum(frames[-1]))


@keras.saving.register_keras_serializable(package="keras_ortho")
class PaddedFrameMSE(_FrameMSE):
    """Mean squared error over all frames, where that of padding is zero.

    The error as Wisdom et al. (2016) print it, if all utterances are padded to the
    longest of the split.

    Args:
        name: Default: `"padded_frame_mse"`.
        dtype: The dtype to compute in. Default: Keras's `floatx`.

    Call arguments:
        As of `ValidFrameMSE`.

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

    def __call__(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Computes the mean of a batch; for the arguments see the class."""
        return super().__call__(
            *flatten_frames(y_true, y_pred, sample_weight, self.dtype)
        )


@keras.saving.register_keras_serializable(package="keras_ortho")
class NegativeSISDR(keras.losses.Loss):
    """The negative scale-invariant signal-to-distortion ratio of waveforms, in dB.

    The mean over the waveforms of a batch, of those that have a sample. What is twelve
    digits below the energy of the reference counts as silence, as does an error that is
    so far below the prediction: the loss ends at -120 dB, and its gradient is finite
    everywhere. Where the reference itself is silent it
    is, in float32, 190 dB more than the energy of the prediction.

    Args:
        zero_mean: Whether to take the mean from either signal first. Default: `False`.
        name: Default: `"negative_si_sdr"`.
        dtype: The dtype to compute in, for which float32 stands in where it is half
            precision: energies overflow that. Default: Keras's `floatx`.

    Call arguments:
        y_true: `[batch, samples]`.
        y_pred: `[batch, samples]`.
        sample_weight: `[batch, samples]`: 1 for a sample, 0 for padding.

    Raises:
        ValueError: When it is called with what is of another shape, or complex.

    Example:
    >>> y_true = np.array([[3.0, -0.5, 2.0, 7.0]])
    >>> loss = NegativeSISDR()
    >>> round(float(loss(y_true, np.array([[2.5, 0.0, 2.0, 8.0]]))), 2)
    -18.4

    Reference:

    - [Le Roux et al., "SDR - half-baked or well done?",
      2019](https://arxiv.org/abs/1811.02508)
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
        """Computes the mean of a batch; for the arguments see the class."""
        check_real_tensor("y_true", y_true)
        check_real_tensor("y_pred", y_pred)
        y_true = ops.convert_to_tensor(y_true, dtype=self.dtype)
        mask = get_keras_mask(y_pred)
        y_pred = ops.convert_to_tensor(y_pred, dtype=self.dtype)
        if len(y_pred.shape) != 2:
            raise ValueError(
                "`y_pred` must have the shape (batch, samples), without an axis of "
                "channels, as `keras.layers.Reshape((-1,))` takes it away. "
                f"Received: y_pred of shape {tuple(y_pred.shape)}"
            )
        check_fits("y_true", y_true, y_pred.shape, "`y_pred`")
        weights = _joined_weights(y_pred, mask, sample_weight)
        y_true, y_pred = y_true * weights, y_pred * weights
        if self.zero_mean:
            # Of the samples that count; what `call` takes away after it is zero.
            count = ops.maximum(ops.sum(weights, axis=-1, keepdims=True), 1.0)
            y_true, y_pred = (
                x - weights * ops.sum(x, axis=-1, keepdims=True) / count
                for x in (y_true, y_pred)
            )
        counts = ops.cast(ops.any(weights > 0, axis=-1), self.dtype)
        loss = super().__call__(y_true, y_pred, counts)
        return loss * share_among_replicas(ops.sum(counts))

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Computes the loss of each waveform.

        Args:
            y_true: `[batch, samples]`.
            y_pred: `[batch, samples]`.

        Returns:
            Tensor of shape `[batch]`.
        """
        if self.zero_mean:
            y_true, y_pred = (
                x - ops.mean(x, axis=-1, keepdims=True) for x in (y_true, y_pred)
            )
        energy = ops.sum(y_true * y_true, axis=-1, keepdims=True)
        small = 1e-12 * energy + _tiny(self.dtype)
        share = ops.sum(y_pred * y_true, axis=-1, keepdims=True) / (energy + small)
        target, small = share * y_true, small[..., 0]
        kept = ops.sum(target * target, axis=-1)
        lost = ops.sum(ops.square(y_pred - target), axis=-1)
        # Else it would fall on where the prediction is loud.
        lost = lost + ops.maximum(small, 1e-12 * kept)
        kept = kept + small
        return (10 / math.log(10)) * (ops.log(lost) - ops.log(kept))

    def get_config(self) -> dict[str, Any]:
        """Gives the arguments that make an equal loss."""
        return {"zero_mean": self.zero_mean, "name": self.name, "dtype": self.dtype}


def _tiny(dtype: str) -> float:
    """What silence has, so that nothing is divided by zero."""
    return float(np.sqrt(np.finfo(dtype).tiny))
