"""Quality and intelligibility of speech as people hear it: PESQ and STOI."""

import math
import warnings
from typing import Literal

import numpy as np

from keras_ortho.audio.samples import signal_pair
from keras_ortho.checks import check, check_choice
from keras_ortho.extras import require
from keras_ortho.metrics.ratios import unscored

# Sampling rates of narrow and wide band.
RATES = {"nb": (8000, 16000), "wb": (16000,)}
MOST_UTTERANCES = 25  # The package has room for 50, unchecked, and splits some.
# Windows of 4 ms per second; the fewest in a burst of speech, a pause, an utterance.
_RATE, _BURST, _PAUSE, _UTTERANCE = 250, 5, 51, 50


def pesq(
    estimate: np.ndarray,
    reference: np.ndarray,
    sample_rate: int,
    *,
    mode: Literal["nb", "wb"] = "nb",
    scale: Literal["mos_lqo", "raw"] = "mos_lqo",
) -> float:
    """Computes the perceptual evaluation of speech quality (PESQ), by the package pesq.

    The raw score of P.862, which MATLAB tools print and Wisdom et al. report of TIMIT,
    differs from the listening quality (MOS-LQO) of P.862.1 and P.862.2.

    Args:
        estimate: As for `segmental_snr`.
        reference: As for `segmental_snr`.
        sample_rate: 8000 or 16000 Hz.
        mode: `"nb"` (narrow band) or `"wb"` (wide band, 16 kHz only). Default: `"nb"`.
        scale: `"mos_lqo"`, or `"raw"`, for narrow band only. Default: `"mos_lqo"`.

    Returns:
        The score, about 1 to 4.5 (MOS-LQO) or -0.5 to 4.5 (raw). NaN with an
        `UnscoredWarning` if a signal is silent, too short or too faint, or the
        reference has more than 25 utterances, about a minute.

    Raises:
        ValueError: If a signal is not a single finite channel, or an option is invalid.

    Example:
    ```python
    pesq(estimate, reference, 8000, scale="raw")
    ```

    Reference:
    - ITU-T Recommendations P.862, P.862.1 and P.862.2
    """
    check_pesq(sample_rate, mode, scale)
    estimate, reference = signal_pair(estimate, reference)
    if not (estimate.any() and reference.any()):
        return unscored("the reference or the estimate is silent or empty")
    utterances = _count_utterances(reference, sample_rate)
    if utterances > MOST_UTTERANCES:
        return unscored(
            f"the reference has {utterances} utterances, but PESQ allows "
            f"{MOST_UTTERANCES}: score it in parts"
        )
    package = require("pesq", extra="speech")
    # Without a score, a negative code or NaN.
    codes = package.PesqError.RETURN_VALUES
    score = package.pesq(int(sample_rate), reference, estimate, mode, on_error=codes)
    if not score > 0:
        return unscored("PESQ finds no utterance, or the signals are short or faint")
    return mos_lqo_to_raw(score) if scale == "raw" else float(score)


def check_pesq(sample_rate: int, mode: str = "nb", scale: str = "mos_lqo") -> None:
    """Checks the options of `pesq`."""
    check_choice("mode", mode, RATES)
    check_choice("scale", scale, ("mos_lqo", "raw") if mode == "nb" else ("mos_lqo",))
    wanted = f"be one of {RATES[mode]} for PESQ with mode={mode!r}"
    check(sample_rate in RATES[mode], "sample_rate", wanted, sample_rate)


def mos_lqo_to_raw(mos_lqo: float) -> float:
    """Converts a narrow-band MOS-LQO to the raw score of P.862: inverts P.862.1."""
    return (4.6607 - math.log(4 / (mos_lqo - 0.999) - 1)) / 1.4945


def _count_utterances(speech: np.ndarray, sample_rate: int) -> int:
    """Counts stretches of speech between pauses, about as P.862 detects them."""
    window = int(sample_rate) // _RATE
    whole = len(speech) // window * window
    if not whole:
        return 0
    spectrum = np.fft.rfft(speech[:whole])
    frequency = np.fft.rfftfreq(whole, 1 / sample_rate)
    spectrum[(frequency < 300) | (frequency > 3400)] = 0  # The telephone band.
    filtered = np.fft.irfft(spectrum, whole).reshape(-1, window)
    power = np.mean(np.square(filtered), axis=1)
    power = np.maximum(power, 1e-4 * power.max())
    # A threshold between the power of speech and that of pauses, iteratively.
    threshold = power.mean()
    for _ in range(12):
        noise = power[power <= threshold]
        threshold = 1.001 * (noise.mean() + 2 * noise.std())
    ndimage = require("scipy.ndimage", extra="speech")
    active = np.pad(power > threshold, _PAUSE)
    active = ndimage.binary_opening(active, np.ones(_BURST))
    active = ndimage.binary_closing(active, np.ones(_PAUSE))
    return ndimage.label(ndimage.binary_opening(active, np.ones(_UTTERANCE)))[1]


def stoi(
    estimate: np.ndarray,
    reference: np.ndarray,
    sample_rate: int,
    *,
    extended: bool = False,
) -> float:
    """Computes the short-time objective intelligibility (STOI), by the package pystoi.

    Args:
        estimate: As for `segmental_snr`.
        reference: As for `segmental_snr`.
        sample_rate: Sampling rate in Hz.
        extended: Whether to compute the extended measure (ESTOI). Default: `False`.

    Returns:
        The intelligibility, from about 0 to 1. NaN with an `UnscoredWarning` if the
        reference is silent, or has no more than 0.41 s of speech.

    Example:
    >>> reference = np.random.default_rng(0).standard_normal(8000)
    >>> round(stoi(reference, reference, 8000), 3)
    1.0

    Reference:
    - Taal et al., "An Algorithm for Intelligibility Prediction of Time-Frequency
      Weighted Noisy Speech", 2011; Jensen and Taal, 2016, for the extended measure
    """
    estimate, reference = signal_pair(estimate, reference)
    package = require("pystoi", extra="speech")
    if not reference.any():
        return unscored("the reference is silent or empty")
    with warnings.catch_warnings():
        # Here pystoi returns 1e-5, as if it were a score, or fails with an index error.
        warnings.filterwarnings("error", "Not enough STFT frames", RuntimeWarning)
        try:
            return float(package.stoi(reference, estimate, int(sample_rate), extended))
        except (RuntimeWarning, IndexError):
            return unscored("the reference has no more than 0.41 s of speech")
