"""Checks and conversions of signals that all speech metrics share."""

import warnings

import numpy as np

from keras_ortho.audio.samples import to_float
from keras_ortho.checks import check_number

# Below it, neither the filters nor the frames of the metrics make sense.
MIN_SAMPLE_RATE = 1000


class UnscoredWarning(UserWarning):
    """Warns that an utterance cannot be scored; its score is NaN."""


def unscored(reason: str) -> float:
    """Returns NaN, with a warning that gives the reason."""
    # The caller of the metric is two frames up.
    warnings.warn(f"Not scored: {reason}.", UnscoredWarning, stacklevel=3)
    return float("nan")


def check_sample_rate(sample_rate: float) -> None:
    """Checks that the metrics make sense at a sampling rate."""
    if check_number("sample_rate", sample_rate) < MIN_SAMPLE_RATE:
        raise ValueError(
            f"`sample_rate` must be at least {MIN_SAMPLE_RATE} Hz. "
            f"Received: sample_rate={sample_rate}"
        )


def signal_pair(
    estimate: np.ndarray, reference: np.ndarray, sample_rate: int
) -> tuple[np.ndarray, np.ndarray]:
    """Converts two signals to float64, and cuts them to the length of the shorter."""
    check_sample_rate(sample_rate)
    estimate = to_float(estimate, "estimate")
    reference = to_float(reference, "reference")
    length = min(len(estimate), len(reference))
    return estimate[:length], reference[:length]
