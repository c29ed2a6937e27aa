"""Ratios of speech to error: segmental as of VOICEBOX and of Loizou, and SI-SDR."""

import math
import warnings
from typing import Literal, NamedTuple

import numpy as np

from keras_ortho.audio.samples import signal_pair
from keras_ortho.checks import check_choice
from keras_ortho.metrics.active_level import Version, active_level


class UnscoredWarning(UserWarning):
    """Warns that an utterance cannot be scored; its score is NaN."""


def unscored(reason: str) -> float:
    """Returns NaN, with a warning that gives the reason."""
    # The caller of the metric is two frames up.
    warnings.warn(f"Not scored: {reason}.", UnscoredWarning, stacklevel=3)
    return float("nan")


class SNRScores(NamedTuple):
    """Segmental and global signal-to-noise ratio of an utterance.

    Attributes:
        segmental: Mean of the scored frames' ratios in dB.
        overall: Ratio in dB of the energies summed over the scored frames.
        frames_used, frames: Numbers of frames that were scored, and of all.
    """

    segmental: float
    overall: float
    frames_used: int
    frames: int


def segmental_snr(
    estimate: np.ndarray,
    reference: np.ndarray,
    sample_rate: int,
    *,
    activity: Literal["p56", "all"] = "p56",
    interpolate: bool = True,
    clamp: tuple[float, float] | None = None,
    voicebox: Version = "2019",
) -> SNRScores:
    """Computes the segmental SNR as defined by VOICEBOX, with which TIMIT was scored.

    Frames have 10 ms, without overlap or window. The ratio of a frame is
    `10 log10(sum(r^2) / sum((r - s)^2))` dB; it is 100 dB if the error is exactly zero,
    and otherwise -100 dB if the reference is. The defaults are VOICEBOX's (mode `Vq`).

    Args:
        estimate: Estimated signal `s`, `[samples]`, int16 or floating point. The longer
            of the two signals is cut to the length of the shorter.
        reference: Reference signal `r`, `[samples]`, on the same scale.
        sample_rate: Sampling rate in Hz.
        activity: `"p56"` scores the frames more than half of which is active speech in
            the reference (VOICEBOX's `V`), `"all"` all frames (`w`). Default: `"p56"`.
        interpolate: Whether the error is the smallest over shifts of the estimate by up
            to a sample, linearly interpolated (`q`, otherwise `z`). Default: `True`.
        clamp: Limits of a frame's ratio in dB, such as `(-10, 35)`. Default: `None`.
        voicebox: Version of the active level: `"2019"`, VOICEBOX's until January 2022,
            or `"2022"`, its own since then. Default: `"2019"`.

    Returns:
        The ratios; NaN with an `UnscoredWarning` if no frame of the reference counts.

    Raises:
        ValueError: If a signal is not a single finite channel, or an option is invalid.

    Example:
    >>> reference = np.sin(np.arange(8000) / 5)
    >>> scores = segmental_snr(0.9 * reference, reference, 8000, interpolate=False)
    >>> round(scores.segmental, 6), round(scores.overall, 6)
    (20.0, 20.0)

    Reference:
    - Brookes, "VOICEBOX: A speech processing toolbox for MATLAB", `v_snrseg`
    """
    check_choice("activity", activity, ("p56", "all"))
    estimate, reference = signal_pair(estimate, reference)
    size = math.floor(0.01 * sample_rate + 0.5)  # Halves go up, as in MATLAB.
    margin = int(interpolate)
    count = max(0, (len(reference) - 2 * margin) // size)

    def frames(signal: np.ndarray, shift: int = 0) -> np.ndarray:
        start = margin + shift
        return signal[start : start + count * size].reshape(count, size)

    error = frames(reference) - frames(estimate)
    noise = np.sum(error**2, axis=1)
    if interpolate:
        steps = [frames(estimate, shift) - frames(estimate) for shift in (-1, 1)]
        noise = np.minimum(*(_least_error(error, step) for step in steps))
    power = np.sum(frames(reference) ** 2, axis=1)
    used = np.ones(count, bool)
    if activity == "p56":
        active = frames(active_level(reference, sample_rate, voicebox=voicebox).active)
        used = np.sum(active, axis=1) > size / 2
    power, noise = power[used], noise[used]
    if not power.any():
        nan = unscored("the reference is silent, never active, or shorter than a frame")
        return SNRScores(nan, nan, 0, count)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = 10 * np.log10(power / noise)
        overall = 10 * np.log10(np.sum(power) / np.sum(noise))
    ratios[power == 0] = -100
    # Also where both are zero: silence for silence is no error.
    ratios[noise == 0] = 100
    if clamp is not None:
        ratios = ratios.clip(*clamp)
    return SNRScores(float(ratios.mean()), float(overall), len(ratios), count)


def _least_error(error: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Returns the error energies after the best fraction, 0 to 1, of a step."""
    length = np.maximum(np.sum(step**2, axis=1), np.finfo(np.float64).tiny)
    part = np.sum(error * step, axis=1) / length
    return np.sum((error - part.clip(0, 1)[:, None] * step) ** 2, axis=1)


def segmental_snr_loizou(
    estimate: np.ndarray,
    reference: np.ndarray,
    sample_rate: int,
    *,
    clamp: tuple[float, float] | None = (-10.0, 35.0),
) -> float:
    """Computes the segmental SNR as defined by Loizou for speech enhancement.

    Frames have 30 ms, a Hann window and 75% overlap; their ratios are clamped.

    Args:
        estimate: As for `segmental_snr`.
        reference: As for `segmental_snr`.
        sample_rate: Sampling rate in Hz.
        clamp: Limits of a frame's ratio in dB, or `None`. Default: `(-10.0, 35.0)`.

    Returns:
        The mean ratio in dB; NaN with an `UnscoredWarning` for silence or < 37.5 ms.

    Example:
    >>> reference = np.sin(np.arange(8000) / 5)
    >>> round(segmental_snr_loizou(0.9 * reference, reference, 8000), 6)
    20.0

    Reference:
    - Loizou, "Speech Enhancement: Theory and Practice", 2nd edition, 2013, 11.1.1
    """
    estimate, reference = signal_pair(estimate, reference)
    size = math.floor(0.03 * sample_rate + 0.5)
    step = int(0.25 * 0.03 * sample_rate)
    count = (len(reference) - size) // step
    if count < 1 or not reference.any():
        return unscored("the reference is silent, or shorter than 37.5 ms")
    window = np.hanning(size + 2)[1:-1]

    def energies(signal: np.ndarray) -> np.ndarray:
        frames = np.lib.stride_tricks.sliding_window_view(signal, size)[::step][:count]
        return np.sum((frames * window) ** 2, axis=1)

    epsilon = np.finfo(np.float64).eps
    noise = energies(reference - estimate)
    ratios = 10 * np.log10(energies(reference) / (noise + epsilon) + epsilon)
    if clamp is not None:
        ratios = ratios.clip(*clamp)
    return float(ratios.mean())


def si_sdr(
    estimate: np.ndarray,
    reference: np.ndarray,
    sample_rate: int = 8000,
    *,
    zero_mean: bool = False,
) -> float:
    """Computes the scale-invariant signal-to-distortion ratio (SI-SDR), in dB.

    It compares the estimate's projection onto the reference with the remainder.

    Args:
        estimate: As for `segmental_snr`.
        reference: As for `segmental_snr`.
        sample_rate: Sampling rate in Hz, which has no effect. Default: 8000.
        zero_mean: Whether to subtract the means first (SI-SNR). Default: `False`.

    Returns:
        The ratio in dB; NaN with an `UnscoredWarning` if either signal is silent.

    Example:
    >>> reference = np.array([3.0, -0.5, 2.0, 7.0])
    >>> round(si_sdr(np.array([2.5, 0.0, 2.0, 8.0]), reference), 2)
    18.4

    Reference:
    - [Le Roux et al., 2019](https://arxiv.org/abs/1811.02508)
    """
    estimate, reference = signal_pair(estimate, reference)
    if zero_mean:
        estimate, reference = (x - x.mean() for x in (estimate, reference))
    if not reference.any() or not estimate.any():
        return unscored("the reference or the estimate is silent or empty")
    reference = reference / np.linalg.norm(reference)
    target = (estimate @ reference) * reference
    kept, lost = np.linalg.norm(target), np.linalg.norm(estimate - target)
    with np.errstate(divide="ignore"):
        return float(20 * np.log10(np.divide(kept, lost)))
