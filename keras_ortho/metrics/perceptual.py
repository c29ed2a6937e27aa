"""Quality and intelligibility of speech as people hear it: PESQ and STOI."""

import math
import warnings
from typing import Literal

import numpy as np

from keras_ortho.checks import check_choice, check_finite
from keras_ortho.extras import require
from keras_ortho.metrics.signals import signal_pair, unscored

SAMPLE_RATES = (8000, 16000)
# The package has room for 50, does not check that there are no more, and splits some.
MOST_UTTERANCES = 25
# Windows of 4 ms per second; the fewest in a burst of speech, a pause, an utterance.
_RATE = 250
_BURST, _PAUSE, _UTTERANCE = 5, 51, 50
# The telephone band, in Hz.
_BAND = (300, 3_400)
# Of STOI: 30 frames of 256 samples at 10 kHz, with 50% overlap. pystoi leaves out the
# last one or two frames of a signal, and warns if too few are left.
MIN_SECONDS = 0.3968


def pesq(
    estimate: np.ndarray,
    reference: np.ndarray,
    sample_rate: int,
    *,
    mode: Literal["nb", "wb"] = "nb",
    scale: Literal["mos_lqo", "raw"] = "mos_lqo",
) -> float:
    """Computes the perceptual evaluation of speech quality (PESQ), by the package pesq.

    There are two scales, which must not be compared with each other: the raw score of
    P.862, which MATLAB tools print and in which Wisdom et al. report their TIMIT
    results, and the listening quality (MOS-LQO) of P.862.1 and P.862.2, which most
    libraries return.

    Args:
        estimate: Estimated signal, `[samples]`, int16 or floating point. The longer of
            the two signals is cut to the length of the shorter.
        reference: Reference signal, `[samples]`, on the same scale.
        sample_rate: 8000 or 16000 Hz.
        mode: `"nb"` (narrow band, P.862) or `"wb"` (wide band, P.862.2, 16 kHz only).
            Default: `"nb"`.
        scale: `"mos_lqo"`, or `"raw"` for the raw score of narrow band. Default:
            `"mos_lqo"`.

    Returns:
        The score, about 1 to 4.5 (MOS-LQO) or -0.5 to 4.5 (raw), slightly lower for
        some estimates that have nothing in common with the reference. NaN with an
        `UnscoredWarning` if PESQ finds no utterance, a signal is silent, the estimate
        is too faint, the signals are shorter than a quarter of a second, or the
        reference has more than 25 utterances separated by pauses, about a minute, and
        must be scored in parts.

    Raises:
        ValueError: If a signal is not a single finite channel, an option is not
            allowed, or options do not fit each other.
        ImportError: If pesq is not installed; installing it requires a C compiler.

    Example:
    ```python
    pesq(estimate, reference, 8000, scale="raw")
    ```

    Reference:

    - ITU-T Recommendations P.862, P.862.1 and P.862.2
    """
    check_pesq_options(sample_rate, mode, scale)
    sample_rate = int(sample_rate)
    estimate, reference = signal_pair(estimate, reference, sample_rate)
    package = require("pesq", extra="speech")
    for name, signal in (("estimate", estimate), ("reference", reference)):
        if not signal.any():
            return unscored(f"the {name} is silent or empty")
    utterances = count_utterances(reference, sample_rate)
    if utterances > MOST_UTTERANCES:
        return unscored(
            f"the reference has {utterances} utterances, but PESQ allows "
            f"{MOST_UTTERANCES}: score it in parts"
        )
    try:
        score = package.pesq(sample_rate, reference, estimate, mode)
    except (package.NoUtterancesError, package.BufferTooShortError) as error:
        return unscored(f"{error.args[0].decode()} (PESQ)")
    except ValueError:
        # The only cause left: the power of a very faint estimate underflows to 0/0.
        return unscored("the estimate is too faint for PESQ")
    return mos_lqo_to_raw(score) if scale == "raw" else float(score)


def check_pesq_options(sample_rate: int, mode: str, scale: str) -> None:
    """Checks the options of `pesq`."""
    if sample_rate not in SAMPLE_RATES:
        raise ValueError(
            f"`sample_rate` must be one of {SAMPLE_RATES} for PESQ. "
            f"Received: {sample_rate}"
        )
    check_choice("mode", mode, ("nb", "wb"))
    check_choice("scale", scale, ("mos_lqo", "raw"))
    if mode == "wb" and sample_rate == 8000:
        raise ValueError("At 8 kHz only `mode='nb'` is defined. Received: mode='wb'")
    if mode == "wb" and scale == "raw":
        raise ValueError(
            "`scale='raw'` requires `mode='nb'`. Received: mode='wb', scale='raw'"
        )


def mos_lqo_to_raw(mos_lqo: float) -> float:
    """Converts a narrow-band MOS-LQO to a raw P.862 score, the inverse of P.862.1.

    Args:
        mos_lqo: Strictly between 0.999 and 4.999; or NaN, for an unscored utterance.

    Returns:
        The raw score; NaN for NaN.

    Raises:
        ValueError: If `mos_lqo` is not such a number.

    Example:
    >>> round(mos_lqo_to_raw(1.2955202), 4)
    1.4291
    """
    if not (0.999 < mos_lqo < 4.999 or math.isnan(mos_lqo)):
        raise ValueError(
            f"`mos_lqo` must lie between 0.999 and 4.999. Received: mos_lqo={mos_lqo!r}"
        )
    return (4.6607 - math.log(4 / (mos_lqo - 0.999) - 1)) / 1.4945


def raw_to_mos_lqo(raw: float) -> float:
    """Converts a raw P.862 score to a narrow-band MOS-LQO, by the mapping of P.862.1.

    Args:
        raw: Raw score, -0.5 to 4.5.

    Returns:
        The MOS-LQO.

    Raises:
        ValueError: If `raw` is not a finite number.

    Example:
    >>> round(raw_to_mos_lqo(4.5), 3)
    4.549
    """
    return 0.999 + 4 / (1 + math.exp(-1.4945 * check_finite("raw", raw) + 4.6607))


def count_utterances(speech: np.ndarray, sample_rate: int) -> int:
    """Counts stretches of speech between pauses, about as P.862 detects them."""
    window = sample_rate // _RATE
    whole = len(speech) // window * window
    if not whole:
        return 0
    spectrum = np.fft.rfft(speech[:whole])
    frequency = np.fft.rfftfreq(whole, 1 / sample_rate)
    spectrum[(frequency < _BAND[0]) | (frequency > _BAND[1])] = 0
    filtered = np.fft.irfft(spectrum, whole).reshape(-1, window)
    power = np.mean(np.square(filtered), axis=1)
    power = np.maximum(power, 1e-4 * power.max())
    active = power > _threshold(power)
    active[[0, -1]] = False
    for start, end in _runs(active):
        if end - start < _BURST:
            active[start:end] = False
    for start, end in _runs(~active):
        if end - start < _PAUSE and start and end < len(active):
            active[start:end] = True
    return sum(end - start >= _UTTERANCE for start, end in _runs(active))


def _threshold(power: np.ndarray) -> float:
    """Finds a threshold between the power of speech and that of pauses, iteratively."""
    threshold = power.mean()
    for _ in range(12):
        noise = power[power <= threshold]
        threshold = 1.001 * (noise.mean() + 2 * noise.std())
    return float(threshold)


def _runs(active: np.ndarray) -> list[tuple[int, int]]:
    """Returns where each stretch of `True` begins and ends."""
    edges = np.flatnonzero(np.diff(active.astype(int), prepend=0, append=0))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


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
