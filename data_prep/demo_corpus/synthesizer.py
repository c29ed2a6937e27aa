"""A cascade/parallel formant synthesizer.

Voicing and aspiration go through a cascade of resonators, one per formant; frication
noise goes through resonators in parallel. Control values are given once per frame of
5 ms, as in the original; here the resonators run at 16 kHz, with as many formants as
that band holds.

Sources:
    Klatt (1980), "Software for a cascade/parallel formant synthesizer", JASA 67(3),
    971-995: structure, resonators, control values.
    Rosenberg (1971), "Effect of glottal pulse shape on the quality of natural
    vowels", JASA 49(2B), 583-590: the polynomial pulse (type B).
"""

from typing import NamedTuple

import numpy as np

from keras_ortho.extras import require

from .filters import (
    FFT,
    FRAME,
    RATE,
    band_pass,
    filter_frames,
    nasal_section,
    resonator,
    response,
)

# All in Hz: the width of the low-pass filter that makes voicing nearly sinusoidal,
MURMUR_BANDWIDTH = 200.0
# the formants above F4 of a uniform tube as long as a man's vocal tract,
HIGH_FORMANTS = np.array([4500.0, 5500.0, 6500.0, 7500.0])
# the two highest resonators of the frication noise, for a man, and the widths at F2-F6.
NOISE_FORMANTS = np.array([4500.0, 6000.0])
NOISE_BANDWIDTHS = np.array([250.0, 350.0, 450.0, 700.0, 1800.0])
# Amplitude of the voiced sources where that of noise is its standard deviation.
VOICING_GAIN = 0.28


class Voice(NamedTuple):
    """What makes a voice, apart from what it says.

    Attributes:
        opening: Part of a period in which the glottis opens, in (0, 1).
        closing: Part of a period in which the glottis closes, in (0, 1).
        jitter: Standard deviation of a pulse's time, relative to the period.
        shimmer: Standard deviation of a pulse's height, relative to the height.
        tilt: Cut-off frequency of the low-pass filter on the pulses, in Hz.
        breath: Amplitude of the noise of an open glottis over that of voicing.
        tract: Formant frequencies over those of a man's vocal tract.
    """

    opening: float = 0.4
    closing: float = 0.16
    jitter: float = 0.0
    shimmer: float = 0.0
    tilt: float = 4000.0
    breath: float = 0.0
    tract: float = 1.0


class Controls(NamedTuple):
    """Control values of an utterance, one row per frame.

    Attributes:
        f0: Fundamental frequency in Hz, shape `(frames,)`.
        formants: F1-F4 in Hz, shape `(frames, 4)`.
        bandwidths: Their bandwidths in Hz, shape `(frames, 4)`.
        nasal_zero: Frequency of the nasal zero in Hz, shape `(frames,)`.
        voicing: Amplitude of the glottal pulses, shape `(frames,)`.
        murmur: Amplitude of nearly sinusoidal voicing, shape `(frames,)`.
        aspiration: Amplitude of aspiration noise, shape `(frames,)`.
        frication: Amplitudes of frication noise at F2-F6 and unfiltered, shape
            `(frames, 6)`.
    """

    f0: np.ndarray
    formants: np.ndarray
    bandwidths: np.ndarray
    nasal_zero: np.ndarray
    voicing: np.ndarray
    murmur: np.ndarray
    aspiration: np.ndarray
    frication: np.ndarray


def to_samples(track: np.ndarray) -> np.ndarray:
    """Interpolates a track of one value per frame linearly to one per sample."""
    frames = len(track)
    return np.interp(np.arange(frames * FRAME) / FRAME, np.arange(frames), track)


def glottal_flow(f0: np.ndarray, voice: Voice, rng: np.random.Generator) -> np.ndarray:
    """Flow of air through the glottis.

    Each pulse rises as `3 x^2 - 2 x^3` and falls as `1 - x^2` (Rosenberg's type B).
    Pulses begin at any time, not only at samples, so f0 is exact.
    """
    phase = np.cumsum(f0) / RATE
    period = phase.astype(int)
    count = period[-1] + 1
    # Uniform on [0, sqrt(12) jitter]: no pulse begins before its period.
    delays = rng.uniform(0, np.sqrt(12) * voice.jitter, count)
    heights = 1 + voice.shimmer * rng.standard_normal(count)
    position = phase - period - delays[period]
    rise = np.clip(position / voice.opening, 0, 1)
    fall = np.clip((position - voice.opening) / voice.closing, 0, 1)
    return heights[period] * ((3 - 2 * rise) * rise**2 - fall**2)


def radiate(flow: np.ndarray, f0: np.ndarray) -> np.ndarray:
    """Sound that a flow radiates from the lips: its change with time."""
    return VOICING_GAIN * np.diff(flow * RATE / f0, prepend=0.0)


def synthesize(
    controls: Controls, voice: Voice, rng: np.random.Generator
) -> np.ndarray:
    """Synthesizes an utterance."""
    lfilter = require("scipy.signal", extra="speech").lfilter
    samples = len(controls.f0) * FRAME
    f0 = to_samples(controls.f0)
    voicing = to_samples(controls.voicing)
    flow = glottal_flow(f0, voice, rng)
    pole = np.exp(-2 * np.pi * voice.tilt / RATE)
    pulses = lfilter([1 - pole], [1, -pole], radiate(voicing * flow, f0))
    b, a = resonator(np.zeros(1), MURMUR_BANDWIDTH)
    murmur = lfilter(b[0], a[0], radiate(to_samples(controls.murmur) * flow, f0))
    noise = rng.standard_normal(samples)
    breath = voice.breath * voicing * flow + to_samples(controls.aspiration)
    source = pulses + murmur + breath * noise
    frication = rng.standard_normal(samples)
    return _cascade(source, controls, voice) + _parallel(frication, controls, voice)


def _cascade(source: np.ndarray, controls: Controls, voice: Voice) -> np.ndarray:
    """The sound of the glottis through the tract, whose length sets all above F4."""
    high = HIGH_FORMANTS * voice.tract
    high = high[high < 0.97 * RATE / 2]
    tract = response(*nasal_section(controls.nasal_zero))
    tract *= response(*resonator(high, high / 12)).prod(axis=0)
    for center, width in zip(controls.formants.T, controls.bandwidths.T, strict=True):
        tract *= response(*resonator(center, width))
    return filter_frames(source, tract)


def _parallel(noise: np.ndarray, controls: Controls, voice: Voice) -> np.ndarray:
    """Frication noise through what of the tract lies in front of the constriction."""
    frames = len(controls.frication)
    high = np.broadcast_to(NOISE_FORMANTS * voice.tract, (frames, 2))
    centers = np.concatenate([controls.formants[:, 1:], high], axis=1)
    *gains, unfiltered = controls.frication.T[..., None]
    tract = np.repeat(unfiltered.astype(complex), FFT // 2 + 1, axis=1)
    for gain, center, width in zip(gains, centers.T, NOISE_BANDWIDTHS, strict=True):
        tract += gain * response(*band_pass(center, width))
    return filter_frames(noise, tract)
