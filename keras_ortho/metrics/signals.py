"""Checks and conversions of signals that all speech metrics share."""

import warnings

import numpy as np

from keras_ortho.audio.samples import to_float


class UnscoredWarning(UserWarning):
    """Warns that an utterance cannot be scored; its score is NaN."""


def unscored(reason: str) -> float:
    """Returns NaN, with a warning that gives the reason."""
    # The caller of the metric is two frames up.
    warnings.warn(f"Not scored: {reason}.", UnscoredWarning, stacklevel=3)
    return float("nan")


def signal_pair(
    estimate: np.ndarray, reference: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Converts two signals to float64, and cuts them to the length of the shorter."""
    estimate = to_float(estimate, "estimate")
    reference = to_float(reference, "reference")
    length = min(len(estimate), len(reference))
    return estimate[:length], reference[:length]
