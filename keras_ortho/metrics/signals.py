"""Checks and conversions of signals that all speech metrics share."""

import warnings
from collections.abc import Sequence

import numpy as np

from keras_ortho.audio.samples import to_float
from keras_ortho.checks import check_number, is_integer

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


def signal_pairs(
    estimates: Sequence[np.ndarray],
    references: Sequence[np.ndarray],
    sample_rate: int,
    lengths: Sequence[int] | None = None,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns the pairs of a batch, each from `signal_pair`."""
    counts = [len(x) for x in (estimates, references, lengths) if x is not None]
    if len(set(counts)) > 1:
        raise ValueError(
            "`estimates`, `references` and `lengths` must have the same length. "
            f"Received: {counts}"
        )
    pairs = [
        signal_pair(estimate, reference, sample_rate)
        for estimate, reference in zip(estimates, references, strict=True)
    ]
    if lengths is None:
        return pairs
    for length, (estimate, _) in zip(lengths, pairs, strict=True):
        if not is_integer(length) or not 0 <= length <= len(estimate):
            raise ValueError(
                f"Each of `lengths` must be an integer in 0 .. {len(estimate)}, the "
                f"samples of its signals. Received: {length}"
            )
    return [(a[:n], b[:n]) for n, (a, b) in zip(lengths, pairs, strict=True)]
