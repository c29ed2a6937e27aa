"""What all speech metrics ask of their signals."""

import warnings
from collections.abc import Sequence

import numpy as np

from keras_ortho.audio.samples import to_float
from keras_ortho.checks import is_integer

# Below it neither the filters nor the frames of the metrics make sense.
MIN_SAMPLE_RATE = 1000


class UnscoredWarning(UserWarning):
    """An utterance cannot be scored, and its score is NaN."""


def unscored(reason: str) -> float:
    """NaN, with a warning that names the reason.

    Args:
        reason: Why there is no score.

    Returns:
        NaN.
    """
    # The caller of the metric is two frames up.
    warnings.warn(f"Not scored: {reason}.", UnscoredWarning, stacklevel=3)
    return float("nan")


def check_sample_rate(sample_rate: float) -> None:
    """Complains of a sampling rate at which the metrics make no sense.

    Args:
        sample_rate: Sampling rate in Hz.

    Raises:
        ValueError: If it is no number, below 1000 Hz or infinite.
    """
    number = isinstance(sample_rate, int | float | np.integer | np.floating)
    if not (number and MIN_SAMPLE_RATE <= sample_rate < np.inf):
        raise ValueError(
            f"`sample_rate` must be at least {MIN_SAMPLE_RATE} Hz, and finite. "
            f"Received: sample_rate={sample_rate!r}"
        )


def signal_pair(
    estimate: np.ndarray, reference: np.ndarray, sample_rate: int
) -> tuple[np.ndarray, np.ndarray]:
    """Both signals in float64, cut to the shorter of the two.

    Args:
        estimate: `[samples]`, int16 or floating point.
        reference: `[samples]`, int16 or floating point.
        sample_rate: Sampling rate of both in Hz.

    Returns:
        `(estimate, reference)`, float64, of equal length; int16 divided by 32768.

    Raises:
        ValueError: If a signal is not one finite channel of either type, or the
            sampling rate is below 1000 Hz, or infinite.
    """
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
    """The pairs of a batch, each as `signal_pair` gives it.

    Args:
        estimates: Sequence of signals, or `[batch, samples]`.
        references: As `estimates`, as many.
        sample_rate: Sampling rate of all in Hz.
        lengths: Number of samples of each pair; the rest is padding. Default: `None`.

    Returns:
        A list of `(estimate, reference)`.

    Raises:
        ValueError: As `signal_pair`; and if there are not as many estimates as
            references and `lengths`, or a length does not fit its signals.
    """
    if len(estimates) != len(references):
        raise ValueError(
            "There must be as many `estimates` as `references`. "
            f"Received: {len(estimates)} and {len(references)}"
        )
    pairs = [
        signal_pair(estimate, reference, sample_rate)
        for estimate, reference in zip(estimates, references, strict=True)
    ]
    if lengths is None:
        return pairs
    if len(lengths) != len(pairs):
        raise ValueError(
            "There must be one of `lengths` for each of `estimates`. "
            f"Received: {len(lengths)} and {len(pairs)}"
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
