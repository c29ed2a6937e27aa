"""Active speech level of ITU-T P.56, and where speech is active.

Method B of the recommendation: the level of speech without its pauses, found
together with the pauses. Filters, bins of 3 dB and interpolation are those of
`v_activlev` of the VOICEBOX toolbox, on which its segmental SNR rests.

That function changed in January 2022. Until then the edges of the bins were at powers
of two, so that a signal made 1 dB louder had another level by 1 dB but for what is
interpolated between them; since then the envelope is scaled first, by what makes the
mean power of the filtered signal 1.
"""

import math
from typing import Literal, NamedTuple, get_args

import numpy as np

from keras_ortho.audio.samples import to_float
from keras_ortho.extras import require
from keras_ortho.metrics.signals import check_sample_rate

PASSBAND = (200.0, 5500.0)  # Hz
LOW_PASS_FROM = 2.2  # times the upper edge: sampling rate with a low-pass filter
FILTER_ORDER = 5
PASSBAND_LOSS = 0.25  # dB at the edges
STOPBAND_LOSS = 50.0  # dB
TIME_CONSTANT = 0.03  # s, of both averages of the envelope
HANGOVER = 0.2  # s for which activity outlasts the envelope
PADDING = 0.35  # s of silence after the signal, for the hangover to run out
MARGIN = 15.9  # dB between active level and threshold of activity
NUM_BINS = 20  # bins of 3 dB below the highest envelope

Version = Literal["2019", "2022"]


class ActiveLevel(NamedTuple):
    """Active speech level, and where speech is active.

    Attributes:
        level: Mean power while active, in dB relative to a power of 1; `-inf` of
            silence.
        activity: The part of the time that is active, power over active power.
        active: bool `[samples]`, whether speech is active there.
    """

    level: float
    activity: float
    active: np.ndarray


def active_level(
    signal: np.ndarray, sample_rate: int, *, voicebox: Version = "2019"
) -> ActiveLevel:
    """Active speech level of ITU-T P.56, method B.

    The signal is filtered to 200 Hz .. 5.5 kHz; its rectified value, averaged
    twice over 30 ms, is the envelope. The level is the energy over the number of
    samples at which the envelope was above a threshold in the last 0.2 s, where
    the threshold lies 15.9 dB below the level itself.

    Args:
        signal: `[samples]`, speech with little noise, floating point or int16.
        sample_rate: Sampling rate in Hz, at least 1000. Below 12.1 kHz there is no
            low-pass filter.
        voicebox: Version of VOICEBOX: `"2019"`, as it was from November 2019 to January
            2022 and before, but for how it printed the activity; or `"2022"`, as it
            has been since. Default: `"2019"`.

    Returns:
        An `ActiveLevel`.

    Raises:
        ValueError: If `signal` is not one finite channel, the sampling rate is too
            low, or there is no such version.

    Example:
    >>> tone = np.sin(2 * np.pi * 1000 * np.arange(16000) / 8000)
    >>> tone[8000:] = 0  # a second of a tone of power 1/2, a second of silence
    >>> level, activity, _ = active_level(tone, 8000)
    >>> -4.1 < level < -3.0, 0.5 < activity < 0.65
    (True, True)

    Reference:

    - ITU-T Recommendation P.56, "Objective measurement of active speech level"
    - Brookes, "VOICEBOX: A speech processing toolbox for MATLAB", `v_activlev`
    """
    check_version(voicebox)
    signal = to_float(signal, "signal")
    check_sample_rate(sample_rate)
    padded = np.pad(signal, (0, math.ceil(PADDING * sample_rate)))
    filtered = _band_pass(padded, sample_rate)
    envelope = _envelope(filtered, sample_rate)
    energy = np.sum(filtered**2)
    scale = 1.0
    if voicebox == "2022" and energy > 0:
        scale = len(padded) / energy
    # The base-2 logarithm of the power, rounded: a bin of 3 dB.
    mantissas, exponents = np.frexp(scale * envelope**2)
    bins = np.where(mantissas == 0, -np.inf, exponents)
    top = bins.max() + 1
    if not np.isfinite(top):
        return ActiveLevel(-math.inf, 0.0, np.zeros(len(signal), bool))
    level = _level(top - _hold(bins, sample_rate), top, energy, scale)
    threshold = 10 ** ((level - MARGIN) / 20)
    active = _hold(envelope, sample_rate) > threshold
    # Energy may come from the padding, where the signal ends while active.
    activity = min(1.0, energy / len(signal) / 10 ** (level / 10))
    return ActiveLevel(level, float(activity), active[: len(signal)])


def check_version(voicebox: str) -> None:
    """Complains of a version that `active_level` does not have.

    Args:
        voicebox: As for `active_level`.

    Raises:
        ValueError: If there is no such version.
    """
    if voicebox not in get_args(Version):
        raise ValueError(
            f"`voicebox` must be one of {get_args(Version)}. Received: {voicebox!r}"
        )


def _band_pass(signal: np.ndarray, sample_rate: int) -> np.ndarray:
    low, high = PASSBAND
    filtered = _inverse_chebyshev(signal, low, "highpass", sample_rate)
    if sample_rate >= LOW_PASS_FROM * high:
        filtered = _inverse_chebyshev(filtered, high, "lowpass", sample_rate)
    return filtered


def _inverse_chebyshev(
    signal: np.ndarray,
    edge: float,
    kind: Literal["highpass", "lowpass"],
    sample_rate: int,
) -> np.ndarray:
    """Filters with `PASSBAND_LOSS` at `edge`; SciPy asks for the stop band's edge."""
    scipy_signal = require("scipy.signal", extra="speech")
    discrimination = math.sqrt(
        (10 ** (STOPBAND_LOSS / 10) - 1) / (10 ** (PASSBAND_LOSS / 10) - 1)
    )
    ratio = math.cosh(math.acosh(discrimination) / FILTER_ORDER)
    # The ratio of the edges holds in the analog filter, before the bilinear map.
    analog_edge = math.tan(math.pi * edge / sample_rate)
    analog_stop = analog_edge / ratio if kind == "highpass" else analog_edge * ratio
    stop = sample_rate / math.pi * math.atan(analog_stop)
    sections = scipy_signal.cheby2(
        FILTER_ORDER, STOPBAND_LOSS, stop, kind, fs=sample_rate, output="sos"
    )
    return scipy_signal.sosfilt(sections, signal)


def _envelope(signal: np.ndarray, sample_rate: int) -> np.ndarray:
    decay = math.exp(-1 / (TIME_CONSTANT * sample_rate))
    return require("scipy.signal", extra="speech").lfilter(
        [(1 - decay) ** 2], [1, -2 * decay, decay**2], np.abs(signal)
    )


def _hold(values: np.ndarray, sample_rate: int) -> np.ndarray:
    """Maximum over the hangover up to each sample."""
    size = math.ceil(HANGOVER * sample_rate) + 1
    return require("scipy.ndimage", extra="speech").maximum_filter1d(
        values, size, mode="constant", cval=-np.inf, origin=(size - 1) // 2
    )


def _level(depths: np.ndarray, top: float, energy: float, scale: float) -> float:
    """Level at which it lies `MARGIN` above the threshold that it is taken at.

    Args:
        depths: `[samples]`, bin of the envelope below `top`, from 1 on.
        top: Base-2 logarithm of the scaled power at the upper edge of the first bin.
        energy: Sum of the squared samples.
        scale: Scaled power over power.

    Returns:
        The active level in dB.
    """
    depths = np.minimum(depths, NUM_BINS).astype(int)
    active = np.cumsum(np.bincount(depths, minlength=NUM_BINS + 1)[1:])
    levels = 10 * np.log10(energy / active)
    thresholds = 10 * math.log10(2) * (top - np.arange(1, NUM_BINS + 1) - 1)
    thresholds -= 10 * math.log10(scale)
    excess = levels - thresholds - MARGIN
    crossings = np.flatnonzero((excess[:-1] < 0) & (excess[1:] >= 0))
    if not len(crossings):
        return float(levels[-1] if excess[-1] <= 0 else levels[0])
    below = crossings[0]
    part = excess[below] / (excess[below] - excess[below + 1])
    return float(levels[below] + part * (levels[below + 1] - levels[below]))
