"""Active speech level of ITU-T P.56, with filters and bins as in VOICEBOX."""

import math
from typing import Literal, NamedTuple, get_args

import numpy as np

from keras_ortho.audio.samples import to_float
from keras_ortho.checks import check_choice
from keras_ortho.extras import require

PASSBAND = (200.0, 5500.0)  # Hz
LOW_PASS_FROM = 2.2  # times the upper edge: least sampling rate with a low-pass filter
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
    """The level in dB, and the share of the time and the samples of active speech."""

    level: float
    activity: float
    active: np.ndarray


def active_level(
    signal: np.ndarray, sample_rate: int, *, voicebox: Version = "2019"
) -> ActiveLevel:
    """Computes the active speech level of ITU-T P.56, method B, as `v_activlev` does.

    It is the energy from 200 Hz to 5.5 kHz over the number of samples at which the
    envelope exceeded a threshold, 15.9 dB below the level, in the last 0.2 s. VOICEBOX
    has computed it differently since January 2022.
    """
    check_choice("voicebox", voicebox, get_args(Version))
    signal = to_float(signal, "signal")
    padded = np.pad(signal, (0, math.ceil(PADDING * sample_rate)))
    filtered = _filtered(padded, PASSBAND[0], "highpass", sample_rate)
    if sample_rate >= LOW_PASS_FROM * PASSBAND[1]:
        filtered = _filtered(filtered, PASSBAND[1], "lowpass", sample_rate)
    decay = math.exp(-1 / (TIME_CONSTANT * sample_rate))
    envelope = require("scipy.signal", extra="speech").lfilter(
        [(1 - decay) ** 2], [1, -2 * decay, decay**2], np.abs(filtered)
    )
    energy = np.sum(filtered**2)
    scale = len(padded) / energy if voicebox == "2022" and energy > 0 else 1.0
    # The base-2 logarithm of the power, rounded to bins of 3 dB.
    mantissas, exponents = np.frexp(scale * envelope**2)
    bins = np.where(mantissas == 0, -np.inf, exponents)
    top = bins.max() + 1
    if not np.isfinite(top):
        return ActiveLevel(-math.inf, 0.0, np.zeros(len(signal), bool))
    level = _level(top - _hold(bins, sample_rate), top, energy, scale)
    threshold = 10 ** ((level - MARGIN) / 20)
    active = _hold(envelope, sample_rate) > threshold
    # Energy may come from the padding, if the signal ends while active.
    activity = min(1.0, energy / len(signal) / 10 ** (level / 10))
    return ActiveLevel(level, float(activity), active[: len(signal)])


def _filtered(
    signal: np.ndarray, edge: float, kind: str, sample_rate: int
) -> np.ndarray:
    """Applies an inverse Chebyshev filter, with `PASSBAND_LOSS` at `edge`."""
    scipy_signal = require("scipy.signal", extra="speech")
    discrimination = math.sqrt(
        (10 ** (STOPBAND_LOSS / 10) - 1) / (10 ** (PASSBAND_LOSS / 10) - 1)
    )
    ratio = math.cosh(math.acosh(discrimination) / FILTER_ORDER)
    # SciPy takes the edge of the stop band, in this ratio before the bilinear map.
    edge = math.tan(math.pi * edge / sample_rate)
    edge = edge / ratio if kind == "highpass" else edge * ratio
    stop = sample_rate / math.pi * math.atan(edge)
    options = {"btype": kind, "fs": sample_rate, "output": "sos"}
    sections = scipy_signal.cheby2(FILTER_ORDER, STOPBAND_LOSS, stop, **options)
    return scipy_signal.sosfilt(sections, signal)


def _hold(values: np.ndarray, sample_rate: int) -> np.ndarray:
    """Returns the maximum over the hangover that ends at each sample."""
    size = math.ceil(HANGOVER * sample_rate) + 1
    return require("scipy.ndimage", extra="speech").maximum_filter1d(
        values, size, mode="constant", cval=-np.inf, origin=(size - 1) // 2
    )


def _level(depths: np.ndarray, top: float, energy: float, scale: float) -> float:
    """Finds the level that lies `MARGIN` above the threshold it is computed with."""
    depths = np.minimum(depths, NUM_BINS).astype(int)
    active = np.cumsum(np.bincount(depths, minlength=NUM_BINS + 1)[1:])
    levels = 10 * np.log10(energy / active)
    thresholds = 10 * math.log10(2) * (top - np.arange(1, NUM_BINS + 1) - 1)
    excess = levels - thresholds + 10 * math.log10(scale) - MARGIN
    crossings = np.flatnonzero((excess[:-1] < 0) & (excess[1:] >= 0))
    if not len(crossings):
        return float(levels[-1] if excess[-1] <= 0 else levels[0])
    below = crossings[0]
    part = excess[below] / (excess[below] - excess[below + 1])
    return float(levels[below] + part * (levels[below + 1] - levels[below]))
