"""Short-time objective intelligibility."""

import warnings

import numpy as np

from keras_ortho.extras import require
from keras_ortho.metrics.signals import signal_pair, unscored

# 30 frames of 256 samples at 10 kHz, half overlapped; pystoi leaves out the last one or
# two of a signal, and says so itself where too few are left.
MIN_SECONDS = 0.3968


def stoi(
    estimate: np.ndarray,
    reference: np.ndarray,
    sample_rate: int,
    *,
    extended: bool = False,
) -> float:
    """Short-time objective intelligibility (STOI), with the package pystoi.

    Args:
        estimate: Estimated signal, `[samples]`, int16 or floating point. The
            longer of the two signals is cut to the shorter.
        reference: True signal, `[samples]`.
        sample_rate: Sampling rate in Hz, at least 1000; both signals are brought
            to 10 kHz.
        extended: Whether to compute the extended measure (ESTOI). Default: `False`.

    Returns:
        Intelligibility, from about 0 to 1; NaN with an `UnscoredWarning` where the
        reference is silent or has no more than 0.41 s, in frames of 25.6 ms, that are
        not.

    Raises:
        ValueError: If a signal is not one finite channel, or the sampling rate is
            too low.
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
        # pystoi's answer to too few frames is 1e-5, as if it were a score.
        warnings.filterwarnings("error", "Not enough STFT frames", RuntimeWarning)
        try:
            score = pystoi.stoi(
                reference, estimate, int(sample_rate), extended=extended
            )
        except RuntimeWarning:
            return unscored(too_few)
    return float(score)
