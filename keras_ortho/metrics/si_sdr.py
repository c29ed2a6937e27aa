"""Scale-invariant signal-to-distortion ratio."""

import math

import numpy as np

from keras_ortho.metrics.signals import signal_pair, unscored


def si_sdr(
    estimate: np.ndarray,
    reference: np.ndarray,
    sample_rate: int = 8000,
    *,
    zero_mean: bool = False,
) -> float:
    """Computes the scale-invariant signal-to-distortion ratio (SI-SDR), in dB.

    The estimate is split into a multiple of the reference and a remainder orthogonal to
    it; the result is the ratio of their energies. It does not depend on the volume of
    either signal.

    Args:
        estimate: Estimated signal, `[samples]`, int16 or floating point. The longer of
            the two signals is cut to the length of the shorter.
        reference: Reference signal, `[samples]`.
        sample_rate: Sampling rate in Hz, which has no effect. Default: 8000.
        zero_mean: Whether to subtract the mean of each signal first, which some call
            SI-SNR. Default: `False`.

    Returns:
        The ratio in dB. Up to rounding, it is infinite or above 200 for a multiple of
        the reference, and `-inf` or below -200 for an estimate orthogonal to it. NaN
        with an `UnscoredWarning` if either signal is silent.

    Raises:
        ValueError: If a signal is not a single finite channel, or the sampling rate is
            below 1000 Hz.

    Example:
    >>> reference = np.array([3.0, -0.5, 2.0, 7.0])
    >>> round(si_sdr(np.array([2.5, 0.0, 2.0, 8.0]), reference), 2)
    18.4

    Reference:

    - [Le Roux et al., "SDR - half-baked or well done?",
      2019](https://arxiv.org/abs/1811.02508)
    """
    estimate, reference = signal_pair(estimate, reference, sample_rate)
    if zero_mean:
        estimate, reference = (_centered(x) for x in (estimate, reference))
    if not reference.any() or not estimate.any():
        return unscored("the reference or the estimate is silent or empty")
    # Scaled to the same size first, or squares of faint signals would underflow.
    estimate, reference = (x / np.abs(x).max() for x in (estimate, reference))
    reference = reference / np.linalg.norm(reference)
    target = (estimate @ reference) * reference
    kept, lost = np.linalg.norm(target), np.linalg.norm(estimate - target)
    if not lost:
        return math.inf
    return float(20 * np.log10(kept / lost)) if kept else -math.inf


def _centered(signal: np.ndarray) -> np.ndarray:
    """Subtracts the mean of a signal; a constant signal becomes exactly zero."""
    if not len(signal) or np.ptp(signal) == 0:
        return np.zeros_like(signal)
    return signal - signal.mean()
