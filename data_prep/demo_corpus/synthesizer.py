"""From timed phones to sound: a cascade/parallel formant synthesizer.

Voicing and aspiration go through a cascade of resonators, one per formant; frication
noise goes through resonators in parallel. Values change once per frame of 5 ms.

Sources:
    Klatt (1980), "Software for a cascade/parallel formant synthesizer", JASA 67(3),
    971-995. Allen and Rabiner (1977), "A unified approach to short-time Fourier
    analysis and synthesis", Proceedings of the IEEE 65(11): filters by overlap-add.
"""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
from numpy import ndarray
from numpy.random import Generator

from keras_ortho.extras import require

from .prosody import WOMAN_TO_MAN, durations, melody
from .text import PHONES, TABLES, Sound, is_vowel, transcribe

RATE = 16000  # samples per second
FRAME = 80  # samples, 5 ms
FFT = 12 * FRAME  # two frames of input, and 50 ms in which a filter rings out

S = SimpleNamespace(**TABLES["synthesizer"])


def record(
    text: str, speaker: SimpleNamespace, rng: Generator
) -> tuple[ndarray, list[tuple[int, int, str]]]:
    """Returns int16 samples, and each phone's begin, end (in samples) and label."""
    sounds = transcribe(text)
    bounds = np.cumsum([0.0, *durations(sounds, speaker.tempo, rng)])
    pressure = synthesize(sounds, bounds, speaker, text.endswith("?"), rng)
    peak = speaker.level * rng.uniform(0.9, 1.1)
    signal = require("scipy.signal", extra="speech")
    microphone = signal.butter(2, S.microphone, "highpass", fs=RATE, output="sos")
    pressure = signal.sosfilt(microphone, pressure)
    noise = S.noise_floor * rng.standard_normal(len(pressure))
    heard = peak / np.abs(pressure).max() * pressure + noise
    places = [*np.rint(bounds[:-1] * RATE).astype(int).tolist(), len(heard)]
    phones = [(*ends, x) for ends, (x, _) in zip(pairwise(places), sounds, strict=True)]
    return np.rint(heard * 2**15).astype(np.int16), phones


def synthesize(
    sounds: list[Sound],
    bounds: ndarray,
    speaker: SimpleNamespace,
    question: bool,
    rng: Generator,
) -> ndarray:
    """Sound of phones between `bounds`, in s."""
    times = np.arange(np.ceil(bounds[-1] * RATE / FRAME)) * FRAME / RATE
    f0, loudness = melody(sounds, bounds, times, speaker, question, rng)
    index = np.clip(np.searchsorted(bounds, times, "right") - 1, 0, len(sounds) - 1)
    since = times - bounds[index]
    manners = [PHONES[sound.phone]["manner"] for sound in sounds]

    targets = contextual_targets(sounds, speaker.woman)[index] * speaker.build
    position = np.interp(since / np.diff(bounds)[index], S.glide_parts, (0, 1))[:, None]
    formants = (1 - position) * targets[:, 0] + position * targets[:, 1]
    formants = smooth(formants, S.formant_smoothing)
    widths = np.array([TABLES["manners"][manner]["bandwidths"] for manner in manners])
    widths = smooth(widths[index], S.formant_smoothing)
    zeros = [S.nasal_zero if manner == "nasal" else S.nasal_pole for manner in manners]
    zero = smooth(np.array(zeros)[index], S.formant_smoothing)

    sources = np.array([source_amplitudes(sound) for sound in sounds])[index]
    sources[:, :2] *= loudness[:, None]
    # A stop's release is a burst that dies away into aspiration.
    release = np.array([manner.endswith("release") for manner in manners])[index, None]
    burst = np.where(release, np.exp(-since / S.burst_decay)[:, None], 0.0)
    sources[:, 2:3] *= 1 - burst
    steady = np.where(release, 0.0, sources[:, 3:])
    frication = smooth(steady, S.frication_smoothing) + burst * sources[:, 3:]

    voiced = smooth(sources[:, :3], S.source_smoothing)
    glottis = glottal_sound(f0, voiced, speaker, rng)
    noise = rng.standard_normal(len(glottis))
    # The tract's length sets all formants above F4.
    high = np.array(S.high_formants) * speaker.tract
    high = high[high < 0.97 * RATE / 2]
    tract = resonator(np.full_like(zero, S.nasal_pole), S.nasal_bandwidth)
    tract /= resonator(zero, S.nasal_bandwidth)
    tract *= resonator(high, high / 12).prod(axis=0)
    for center, width in zip(formants.T, widths.T, strict=True):
        tract *= resonator(center, width)
    # Frication goes through what of the tract lies in front of the constriction.
    upper = np.outer(S.noise_formants, np.full(len(f0), speaker.tract))
    centers = [*formants[:, 1:].T, *upper]
    *gains, front = frication.T[..., None]
    for gain, center, width in zip(gains, centers, S.noise_bandwidths, strict=True):
        front = front + gain * band_pass(center, width)
    return filter_frames(glottis, tract) + filter_frames(noise, front)


def contextual_targets(sounds: list[Sound], woman: bool) -> ndarray:
    """F1-F4 at the start and the end of each sound, with coarticulation."""
    targets = np.stack([target_formants(s.phone, woman) for s in sounds])
    vowels = np.flatnonzero([is_vowel(sound.phone) for sound in sounds])
    after = np.searchsorted(vowels, np.arange(len(sounds)))
    before, after = np.maximum(after - 1, 0), np.minimum(after, len(vowels) - 1)
    context = np.stack([targets[vowels[before], 1], targets[vowels[after], 0]], axis=1)
    weights = np.zeros((len(sounds), 1, 4))
    for weight, sound in zip(weights[:, 0], sounds, strict=True):
        phone = PHONES[sound.phone]
        if phone["manner"] != "vowel":
            drawn = slice(0 if phone["manner"] in S.open else 1, None)
            weight[drawn] = TABLES["places"][phone["place"]]["coarticulation"]
    return targets + weights * (context - targets)


def target_formants(label: str, woman: bool) -> ndarray:
    """F1-F4 at the start and at the end of a sound by itself."""
    manner, place = PHONES[label]["manner"], PHONES[label]["place"]
    if manner == "vowel":
        ends = TABLES["diphthongs"].get(place, (place, place))
        return np.array([TABLES["vowels"][end][woman] for end in ends], dtype=float)
    row = [TABLES["manners"][manner]["f1"], *TABLES["places"][place]["formants"]]
    return np.array([row, row]) * (WOMAN_TO_MAN if woman else 1.0)


def source_amplitudes(sound: Sound) -> ndarray:
    """Amplitudes of voicing, murmur, aspiration, noise at F2-F6 and unfiltered."""
    phone = PHONES[sound.phone]
    manner = TABLES["manners"][phone["manner"]]
    levels = [manner[name] for name in ("voicing", "murmur", "aspiration")] + [0.0] * 6
    if is_vowel(sound.phone) and not sound.stressed:
        levels[0] += S.unstressed_level
    if "noise" in phone:
        noise = TABLES["places"][phone["place"]]["noise"]
        levels[3:] = [level and level + phone["noise"] for level in noise]
    return np.array([10 ** ((x - 60) / 20) if x > 0 else 0.0 for x in levels])


def smooth(tracks: ndarray, deviation: float) -> ndarray:
    """Smooths tracks, of values per frame, by a Gaussian of a deviation in seconds."""
    ndimage = require("scipy.ndimage", extra="speech")
    return ndimage.gaussian_filter1d(
        tracks.astype(float), deviation * RATE / FRAME, axis=0, mode="nearest"
    )


def glottal_sound(
    f0: ndarray, sources: ndarray, speaker: SimpleNamespace, rng: Generator
) -> ndarray:
    """Pulses, murmur and breath, from f0 and amplitudes `(frames, 3)` per frame."""
    lfilter = require("scipy.signal", extra="speech").lfilter
    frames, samples = np.arange(len(f0)), np.arange(len(f0) * FRAME) / FRAME
    f0, voicing, murmur, aspiration = (
        np.interp(samples, frames, track) for track in (f0, *sources.T)
    )
    # Pulses begin at any time, not only at samples, so f0 is exact.
    phase = np.cumsum(f0) / RATE
    period = phase.astype(int)
    count = period[-1] + 1
    # Uniform on [0, sqrt(12) jitter]: no pulse begins before its period.
    delays = rng.uniform(0, np.sqrt(12) * speaker.jitter, count)
    heights = 1 + speaker.shimmer * rng.standard_normal(count)
    position = phase - period - delays[period]
    # Each pulse rises as 3 x^2 - 2 x^3 and falls as 1 - x^2: Rosenberg's type B.
    rise = np.clip(position / speaker.opening, 0, 1)
    fall = np.clip((position - speaker.opening) / speaker.closing, 0, 1)
    flow = heights[period] * ((3 - 2 * rise) * rise**2 - fall**2)
    # The lips radiate the change of a flow with time.
    pulses, hum = (
        S.voicing_gain * np.diff(amplitude * flow * RATE / f0, prepend=0.0)
        for amplitude in (voicing, murmur)
    )
    pole = np.exp(-2 * np.pi * speaker.tilt / RATE)
    pulses = lfilter([1 - pole], [1, -pole], pulses)
    a = poles(np.zeros(1), S.murmur_bandwidth)[0]
    hum = lfilter([a.sum()], a, hum)
    breath = speaker.breath * voicing * flow + aspiration
    return pulses + hum + breath * rng.standard_normal(len(flow))


def poles(frequency: ndarray, bandwidth: ndarray | float) -> ndarray:
    """Denominator of two poles in powers of 1/z, `(frames, 3)` (Klatt, equation 2)."""
    radius = np.exp(-np.pi * bandwidth / RATE)
    one, turn = np.ones_like(frequency), np.cos(2 * np.pi * frequency / RATE)
    return np.stack([one, -2 * radius * turn, one * radius**2], axis=-1)


def resonator(frequency: ndarray, bandwidth: ndarray | float) -> ndarray:
    """Response of two poles, per frame, with a gain of 1 at 0 Hz."""
    a = poles(frequency, bandwidth)
    return a.sum(axis=-1, keepdims=True) / np.fft.rfft(a, FFT)


def band_pass(frequency: ndarray, bandwidth: ndarray | float) -> ndarray:
    """Response of two poles: about 1 at their center, 0 at 0 Hz and at 8 kHz."""
    a = poles(frequency, bandwidth)
    return np.fft.rfft((1 - a[:, 2:]) / 2 * [1, 0, -1], FFT) / np.fft.rfft(a, FFT)


def filter_frames(signal: ndarray, responses: ndarray) -> ndarray:
    """Filters a signal by a response per frame, which fades into the next one's."""
    blocks = np.concatenate([np.zeros(FRAME), signal]).reshape(-1, FRAME)
    fade = 0.5 - 0.5 * np.cos(np.pi * np.arange(2 * FRAME) / FRAME)
    pieces = fade * np.hstack([blocks[:-1], blocks[1:]])
    filtered = np.fft.irfft(np.fft.rfft(pieces, FFT) * responses, FFT)
    result = np.zeros(len(signal) + FFT)
    for i, piece in enumerate(filtered):
        result[i * FRAME : i * FRAME + FFT] += piece
    return result[FRAME : FRAME + len(signal)]
