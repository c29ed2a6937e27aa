"""Speech with noise at a given ratio, at a given level, and in reverberant rooms."""

import math

import numpy as np

from keras_ortho.audio.samples import to_float
from keras_ortho.audio.stft import SAMPLE_RATE
from keras_ortho.checks import check_decibels
from keras_ortho.extras import require

EARLY = 0.05  # s, after which reflections no longer help to understand speech


def mix(speech: np.ndarray, noise: np.ndarray, snr: float) -> np.ndarray:
    """Adds noise to speech at a given signal-to-noise ratio.

    The ratio is that of the energies of the whole signals, pauses included.

    Args:
        speech: `[samples]`, int16 or floating point.
        noise: As `speech`, with the same number of samples, at any level.
        snr: Signal-to-noise ratio in dB, from -200 to 200.

    Returns:
        float64 `[samples]`, with the speech at its original level.

    Raises:
        ValueError: If a signal is not a single finite channel, or is silent; if the
            signals differ in length; or if `snr` is out of its range.

    Example:
    >>> speech, noise = np.array([3.0, 4.0]), np.array([0.0, 1.0])
    >>> mix(speech, noise, 20.0).tolist()
    [3.0, 4.5]
    """
    snr = check_decibels("snr", snr)
    speech, noise = to_float(speech, "speech"), to_float(noise, "noise")
    if len(speech) != len(noise):
        raise ValueError(
            f"`noise` must have as many samples as the speech, {len(speech)}. "
            f"Received: {len(noise)}"
        )
    sizes = {"speech": np.linalg.norm(speech), "noise": np.linalg.norm(noise)}
    for name, size in sizes.items():
        if not size:
            raise ValueError(f"`{name}` must not be silent. Received: only zeros")
    return speech + noise * (sizes["speech"] / sizes["noise"] / 10 ** (snr / 20))


def at_level(speech: np.ndarray, level: float) -> np.ndarray:
    """Scales speech to a given root-mean-square level, pauses included.

    Args:
        speech: `[samples]`, int16 or floating point.
        level: The level in dB relative to full scale, from -200 to 200; below 0 for
            most speech.

    Returns:
        float64 `[samples]`, where full scale is 1.

    Raises:
        ValueError: If `speech` is not a single finite channel, or is silent, or `level`
            is out of its range.

    Example:
    >>> at_level(np.array([3.0, -3.0]), -20.0).round(3).tolist()
    [0.1, -0.1]
    """
    speech = to_float(speech, "speech")
    level = check_decibels("level", level)
    if not np.any(speech):
        raise ValueError(
            f"`speech` must not be silent. Received: {len(speech)} samples, all zero"
        )
    speech = speech / np.abs(speech).max()  # Or the squares might underflow.
    size = math.sqrt(np.mean(np.square(speech)))
    return speech * (10 ** (level / 20) / size)


def late_reverberation(speech: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Computes the reverberation of speech in a room, 50 ms after the direct sound on.

    The room's impulse response follows Polack's model, `h(t) = n(t) 10^(-3 t / T)`:
    white Gaussian noise `n` that decays by 60 dB in the reverberation time `T`, drawn
    from 0.3 to 1 s. The first 50 ms are left out, because early reflections help to
    understand speech.

    Args:
        speech: `[samples]` at 8 kHz, int16 or floating point.
        random: Random generator, from which `T` is drawn, too.

    Returns:
        float64 `[samples]`, without the speech itself; `mix` sets its level.

    Raises:
        ValueError: If `speech` is not a single finite channel.

    Reference:

    - Polack, "La transmission de l'énergie sonore dans les salles", 1988
    """
    speech = to_float(speech, "speech")
    seconds = random.uniform(0.3, 1.0)
    time = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    fading = 10 ** (-3 * time / seconds)
    response = (time >= EARLY) * fading * random.normal(size=len(time))
    convolve = require("scipy.signal", extra="speech").fftconvolve
    late = convolve(speech, response)[: len(speech)]
    # Before the first late reflection there are only rounding errors.
    begin = int(np.argmax(speech != 0)) if np.any(speech) else len(speech)
    late[: begin + math.ceil(EARLY * SAMPLE_RATE)] = 0
    return late
