"""Synthetic noises, and speech mixed with them, at a given level, or in a room.

Each of `NOISES` takes the number of samples, at 8 kHz, and a random generator.
"""

from collections.abc import Callable, Sequence

import numpy as np

from keras_ortho.audio.samples import to_float
from keras_ortho.audio.stft import SAMPLE_RATE
from keras_ortho.checks import check, check_count, check_decibels
from keras_ortho.extras import require

Noise = Callable[[int, np.random.Generator], np.ndarray]

EARLY = 0.05  # s, after which reflections no longer help to understand speech
HIGHEST = 3600.0  # Hz, of partials and clicks: below the Nyquist frequency


def white(samples: int, random: np.random.Generator) -> np.ndarray:
    """Generates white Gaussian noise."""
    return random.normal(size=samples)


def pink(samples: int, random: np.random.Generator) -> np.ndarray:
    """Generates pink noise, whose power density falls as `1 / f` above 20 Hz."""
    noise = white(samples, random)
    return _colored(noise, lambda f: 1 / np.sqrt(np.maximum(f, 20.0)))


def hum(samples: int, random: np.random.Generator) -> np.ndarray:
    """Generates mains hum: within 0.5 Hz of 50 or 60 Hz, steady, with harmonics."""
    pitch = random.choice([50.0, 60.0]) + random.uniform(-0.5, 0.5)
    return _partials(np.full(samples, pitch), random, decay=random.uniform(0.3, 1.0))


def clicks(samples: int, random: np.random.Generator) -> np.ndarray:
    """Generates clicks, 2 to 40 a second: resonances that decay within milliseconds."""
    rate = np.exp(random.uniform(np.log(2.0), np.log(40.0)))
    at = random.random(samples) < rate / SAMPLE_RATE
    at[random.integers(samples)] = True  # Otherwise a short noise could be silent.
    strength = at * random.normal(size=samples) * random.gamma(2.0, size=samples)
    time = np.arange(SAMPLE_RATE // 20) / SAMPLE_RATE
    pitch, fading = random.uniform(500.0, HIGHEST), random.uniform(1e-3, 6e-3)
    click = np.exp(-time / fading) * np.cos(2 * np.pi * pitch * time)
    return _convolved(strength, click)


def wind(samples: int, random: np.random.Generator) -> np.ndarray:
    """Generates wind on a microphone: low-pass noise in gusts of about a second."""
    edge = random.uniform(100.0, 400.0)
    noise = _colored(white(samples, random), lambda f: 1 / (1 + np.square(f / edge)))
    gusts = random.normal(size=samples // SAMPLE_RATE + 2)
    time = np.linspace(0, samples / SAMPLE_RATE, samples)
    return noise * np.exp(np.interp(time, range(len(gusts)), gusts))


def siren(samples: int, random: np.random.Generator) -> np.ndarray:
    """Generates a siren, whose pitch rises and falls within 420 to 1540 Hz."""
    time = np.arange(samples) / SAMPLE_RATE
    rate, phase = random.uniform(0.2, 3.0), random.uniform(0, 2 * np.pi)
    middle, width = random.uniform(700.0, 1100.0), random.uniform(0.2, 0.4)
    pitch = middle * (1 + width * np.sin(2 * np.pi * rate * time + phase))
    return _partials(pitch, random, decay=random.uniform(1.0, 2.0))


def babble(
    samples: int, random: np.random.Generator, voices: Sequence[np.ndarray]
) -> np.ndarray:
    """Generates babble: three to eight voices at once, equally loud.

    Args:
        samples: Number of samples.
        random: Random generator.
        voices: Speech to draw from, with replacement; each as for `excerpt`.

    Returns:
        float64 `[samples]`, at any level.
    """
    chosen = random.integers(len(voices), size=random.integers(3, 9))
    return np.sum([excerpt(voices[n], samples, random) for n in chosen], axis=0)


def excerpt(sound: np.ndarray, samples: int, random: np.random.Generator) -> np.ndarray:
    """Cuts a random piece out of a sound, which is repeated if it is too short.

    Args:
        sound: `[any]`, int16 or floating point, not silent.
        samples: Number of samples of the piece, a positive integer.
        random: Random generator.

    Returns:
        float64 `[samples]`, never silent, on the scale that gives `sound` a power of 1.

    Raises:
        ValueError: If `sound` is silent, or not a single finite channel, or `samples`
            is not positive.

    Example:
    >>> excerpt(np.array([1.0, -1.0]), 4, np.random.default_rng(0)).tolist()
    [1.0, -1.0, 1.0, -1.0]
    """
    check_count("samples", samples)
    sound = _loud("sound", sound)
    piece = np.zeros(samples)
    while not piece.any():  # A recording may contain silence.
        start = random.integers(max(len(sound) - samples, 0) + 1)
        piece = np.resize(sound[start:], samples)
    return piece / np.sqrt(np.mean(np.square(sound)))


def mix(speech: np.ndarray, noise: np.ndarray, snr: float) -> np.ndarray:
    """Adds noise to speech at a given signal-to-noise ratio, pauses included.

    Args:
        speech: `[samples]`, int16 or floating point.
        noise: As `speech`, with the same number of samples, at any level.
        snr: Signal-to-noise ratio in dB, from -200 to 200.

    Returns:
        float64 `[samples]`, with the speech at its original level.

    Raises:
        ValueError: If a signal is silent, or an argument is not as described.

    Example:
    >>> speech, noise = np.array([3.0, 4.0]), np.array([0.0, 1.0])
    >>> mix(speech, noise, 20.0).tolist()
    [3.0, 4.5]
    """
    snr = check_decibels("snr", snr)
    speech, noise = _loud("speech", speech), _loud("noise", noise)
    ratio = np.linalg.norm(speech) / np.linalg.norm(noise)
    return speech + noise * (ratio / 10 ** (snr / 20))


def at_level(speech: np.ndarray, level: float) -> np.ndarray:
    """Scales speech to a level in dB of full scale: its RMS value, pauses included."""
    size = 10 ** (check_decibels("level", level) / 20)
    speech = _loud("speech", speech)
    return speech * (size / np.sqrt(np.mean(np.square(speech))))


def late_reverberation(speech: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Computes the reverberation of speech in a room, 50 ms after the direct sound on.

    The impulse response is Polack's ("La transmission de l'énergie sonore dans les
    salles", 1988): white noise that decays by 60 dB in a drawn time of 0.3 to 1 s.
    """
    seconds = random.uniform(0.3, 1.0)
    time = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    fading = 10 ** (-3 * time / seconds)
    response = (time >= EARLY) * fading * random.normal(size=len(time))
    return _convolved(to_float(speech, "speech"), response)


def _loud(name: str, sound: np.ndarray) -> np.ndarray:
    sound = to_float(sound, name)
    check(sound.any(), name, "not be silent", f"{len(sound)} samples")
    return sound


def _colored(
    noise: np.ndarray, magnitude: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    frequencies = np.fft.rfftfreq(len(noise), 1 / SAMPLE_RATE)
    return np.fft.irfft(magnitude(frequencies) * np.fft.rfft(noise), len(noise))


def _partials(
    pitch: np.ndarray, random: np.random.Generator, decay: float
) -> np.ndarray:
    """Sums the harmonics of a pitch, the k-th with an amplitude of about `k^-decay`."""
    turns = np.exp(2j * np.pi * np.cumsum(pitch) / SAMPLE_RATE)
    partial, total = np.ones(len(pitch), complex), np.zeros(len(pitch))
    for k in range(1, max(2, int(HIGHEST / pitch.max(initial=1.0)) + 1)):
        # The k-th power by multiplication, which costs a tenth of a sine.
        partial *= turns
        start = np.exp(2j * np.pi * random.random())
        total += (random.uniform(0.2, 1.0) * k**-decay * start * partial).real
    return total


def _convolved(signal: np.ndarray, response: np.ndarray) -> np.ndarray:
    convolve = require("scipy.signal", extra="speech").fftconvolve
    return convolve(signal, response)[: len(signal)]


NOISES: dict[str, Noise] = {
    each.__name__: each for each in (white, pink, hum, clicks, wind, siren)
}
