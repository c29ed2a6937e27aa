"""Checks and conversions of signals that all speech metrics share."""

import warnings
from collections.abc import Sequence

import numpy as np

from keras_ortho.audio.samples import to_float
from keras_ortho.checks import is_integer

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
    number = isinstance(sample_rate, int | float | np.integer | np.floating)
    if not (number and MIN_SAMPLE_RATE <= sample_rate < np.inf):
        raise ValueError(
            f"`sample_rate` must be at least {MIN_SAMPLE_RATE} Hz, and finite. "
            f"Received: sample_rate={sample_rate!r}"
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


def signal_pairs(
    estimates: Sequence[np.ndarray],
    references: Sequence[np.ndarray],
    sample_rate: int,
    lengths: Sequence[int] | None = None,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns the pairs of a batch, each from `signal_pair`."""
    if len(estimates) != len(references):
        raise ValueError(
            "`references` and `estimates` must have the same length. Received: "
            f"{len(estimates)} and {len(references)}"
        )
    pairs = [
        signal_pair(estimate, reference, sample_rate)
        for estimate, reference in zip(estimates, references, strict=True)
    ]
    if lengths is None:
        return pairs
    if len(lengths) != len(pairs):
        raise ValueError(
            "`lengths` and `estimates` must have the same length. Received: "
            f"{len(lengths)} and {len(pairs)}"
        )
    for length, (estimate, _) in zip(lengths, pairs, strict=True):
        if not is_integer(length) or not 0 <= length <= len(estimate):
            raise ValueError(
                f"Each of `lengths` must be an integer in 0 .. {len(estimate)}, the "
                f"samples of its signals. Received: {length}"
            )
    return [
        (estimate[:length], reference[:length])
        for length, (estimate, reference) in zip(lengths, pairs, strict=True)
    ]
