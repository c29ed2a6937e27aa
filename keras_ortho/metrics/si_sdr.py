"""Scale-invariant signal-to-distortion ratio."""

import math

import numpy as np

from keras_ortho.metrics.signals import MIN_SAMPLE_RATE, signal_pair, unscored


def si_sdr(
    estimate: np.ndarray, reference: np.ndarray, *, zero_mean: bool = False
) -> float:
    """Scale-invariant signal-to-distortion ratio (SI-SDR), in dB.

    The estimate is split into a multiple of the reference and what is orthogonal to
    that; the ratio is that of their energies. It is the same at every volume of either
    signal.

    Args:
        estimate: Estimated signal, `[samples]`, int16 or floating point. The
            longer of the two signals is cut to the shorter.
        reference: True signal, `[samples]`.
        zero_mean: Whether to take the mean from either signal first, which some call
            SI-SNR. Default: `False`.

    Returns:
        The ratio in dB: as far as rounding allows, above 200 or infinite for a multiple
        of the reference, below -200 where the estimate has nothing of it; NaN with an
        `UnscoredWarning` where either signal is silent.

    Raises:
        ValueError: If a signal is not one finite channel.

    Example:
    >>> reference = np.array([3.0, -0.5, 2.0, 7.0])
    >>> round(si_sdr(np.array([2.5, 0.0, 2.0, 8.0]), reference), 2)
    18.4

    Reference:

    - [Le Roux et al., "SDR - half-baked or well done?",
      2019](https://arxiv.org/abs/1811.02508)
    """
    # At any rate: nothing in it is of time.
    estimate, reference = signal_pair(estimate, reference, MIN_SAMPLE_RATE)
    if zero_mean:
        estimate, reference = (_centered(x) for x in (estimate, reference))
    if not reference.any() or not estimate.any():
        return unscored("the reference or the estimate is silent or empty")
    # To the same size first, or squares of faint signals would vanish.
    estimate, reference = (x / np.abs(x).max() for x in (estimate, reference))
    reference = reference / np.linalg.norm(reference)
    target = (estimate @ reference) * reference
    kept, lost = np.linalg.norm(target), np.linalg.norm(estimate - target)
    if not lost:
        return math.inf
    return float(20 * np.log10(kept / lost)) if kept else -math.inf


def _centered(signal: np.ndarray) -> np.ndarray:
    """A signal less its mean; of one that is constant no rounding is left."""
    if not len(signal) or np.ptp(signal) == 0:
        return np.zeros_like(signal)
    return signal - signal.mean()
