"""Mean squared error of padded sequences, under both definitions in use.

A batch of `B` sequences of different lengths `L` is padded to `T` frames of `F`
bins, and `sample_weight`, `[B, T]`, is 1 where there is a frame and 0 where there
is padding. Then the squared errors of the frames are divided

- by `F` times the number of frames, the sum of `L`: `ValidFrameMSE`,
- by `F` times the number of frames *and* padding, `B T`: `PaddedFrameMSE`. So
  Wisdom et al. (2016) compute their TIMIT errors, padded to the longest utterance
  of the split. The value depends on the padding: it is `mean(L) / T` times the
  other.
"""

import keras
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_fits
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
        ValueError: If `y_true` has another shape than `y_pred`, or there is not one
            weight for each frame.
    """
    y_true = ops.convert_to_tensor(y_true, dtype=dtype)
    mask = get_keras_mask(y_pred)
    y_pred = ops.convert_to_tensor(y_pred, dtype=dtype)
    check_fits("y_true", y_true, y_pred.shape, "`y_pred`")
    weights = ops.ones(ops.shape(y_pred)[:-1], dtype)
    for factor in (mask, sample_weight):
        if factor is not None:
            factor = ops.convert_to_tensor(factor, dtype=dtype)
            check_fits("sample_weight", factor, y_pred.shape[:-1], "`y_pred`")
            weights = weights * factor
    bins = y_pred.shape[-1]
    return (
        ops.reshape(y_true, (-1, bins)),
        ops.reshape(y_pred, (-1, bins)),
        ops.reshape(weights, (-1,)),
    )


class _FrameMSE(keras.losses.MeanSquaredError):
    """Keras's mean squared error over frames that `flatten_frames` has laid out."""

    def __call__(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        return super().__call__(
            *flatten_frames(y_true, y_pred, sample_weight, self.dtype)
        )

    def get_config(self) -> dict[str, str]:
        return {"name": self.name, "dtype": self.dtype}


@keras.saving.register_keras_serializable(package="keras_ortho")
class ValidFrameMSE(_FrameMSE):
    """Mean squared error over the frames that are no padding.

    Give the mask as `sample_weight`, or let a Keras mask reach the output; with
    both a frame counts by their product. The `loss` that `fit` reports is a mean of
    the batches' means: `keras_ortho.metrics.ValidFrameMSE` among `weighted_metrics`
    is the mean over all frames.

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


@keras.saving.register_keras_serializable(package="keras_ortho")
class PaddedFrameMSE(_FrameMSE):
    """Mean squared error over all frames, where that of padding is zero.

    The error as Wisdom et al. (2016) print it, if all utterances are padded to the
    longest of the split.

    Args:
        name: Default: `"padded_frame_mse"`.
        dtype: The dtype to compute in. Default: Keras's `floatx`.

    Call arguments:
        y_true: `[batch, time, bins]`.
        y_pred: `[batch, time, bins]`.
        sample_weight: `[batch, time]`: 1 for a frame, 0 for padding.

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
