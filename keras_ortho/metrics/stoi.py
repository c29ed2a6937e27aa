"""Short-time objective intelligibility."""

import warnings

import numpy as np

from keras_ortho.extras import require
from keras_ortho.metrics.signals import signal_pair, unscored

# 30 frames of 256 samples at 10 kHz, with 50% overlap. pystoi leaves out the last one
# or two frames of a signal, and warns if too few are left.
MIN_SECONDS = 0.3968


def stoi(
    estimate: np.ndarray,
    reference: np.ndarray,
    sample_rate: int,
    *,
    extended: bool = False,
) -> float:
    """Computes the short-time objective intelligibility (STOI), by the package pystoi.

    Args:
        estimate: Estimated signal, `[samples]`, int16 or floating point. The longer of
            the two signals is cut to the length of the shorter.
        reference: Reference signal, `[samples]`.
        sample_rate: Sampling rate in Hz, a whole number of at least 1000; both signals
            are resampled to 10 kHz.
        extended: Whether to compute the extended measure (ESTOI). Default: `False`.

    Returns:
        The intelligibility, from about 0 to 1. NaN with an `UnscoredWarning` if the
        reference is silent, or has no more than 0.41 s of speech, in frames of 25.6 ms.

    Raises:
        ValueError: If a signal is not a single finite channel, or the sampling rate is
            too low or not a whole number.
        ImportError: If pystoi is not installed.

    Example:
    >>> reference = np.random.default_rng(0).standard_normal(8000)
    >>> round(stoi(reference, reference, 8000), 3)
    1.0

    Reference:

    - Taal et al., "An Algorithm for Intelligibility Prediction of Time-Frequency
      Weighted Noisy Speech", 2011
    - Jensen and Taal, "An Algorithm for Predicting the Intelligibility of Speech
      Masked by Modulated Noise Maskers", 2016
    """
    estimate, reference = signal_pair(estimate, reference, sample_rate)
    if sample_rate != int(sample_rate):
        raise ValueError(
            "`sample_rate` must be a whole number of Hz. "
            f"Received: sample_rate={sample_rate}"
        )
    pystoi = require("pystoi", extra="speech")
    if not reference.any():
        return unscored("the reference is silent or empty")
    too_few = "the reference has no more than 0.41 s of speech"
    if len(reference) < MIN_SECONDS * sample_rate:
        return unscored(too_few)
    with warnings.catch_warnings():
        # For too few frames pystoi returns 1e-5, as if it were a score.
        warnings.filterwarnings("error", "Not enough STFT frames", RuntimeWarning)
        try:
            score = pystoi.stoi(
                reference, estimate, int(sample_rate), extended=extended
            )
        except RuntimeWarning:
            return unscored(too_few)
    return float(score)
