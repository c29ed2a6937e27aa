"""A sentence read by a speaker, as a microphone would record it."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from keras_ortho.extras import require

from .articulation import articulate
from .filters import FRAME, RATE
from .prosody import durations, loudness, melody
from .speakers import Speaker
from .synthesizer import synthesize
from .transcription import transcribe

NOISE_FLOOR = 1e-3  # of the recording itself, root mean square: -60 dB of full scale
MICROPHONE = 150.0  # Hz below which the headset's microphone hears less and less


class Recording(NamedTuple):
    """A recorded sentence.

    Attributes:
        samples: 16-bit samples at 16 kHz, shape `(samples,)`.
        phones: Begin and end in samples, and label, of each phone.
    """

    samples: np.ndarray
    phones: list[tuple[int, int, str]]


def record(text: str, speaker: Speaker, rng: np.random.Generator) -> Recording:
    """Has a speaker read a sentence."""
    sounds = transcribe(text)
    bounds = np.concatenate([[0.0], np.cumsum(durations(sounds, speaker, rng))])
    frames = int(np.ceil(bounds[-1] * RATE / FRAME))
    times = np.arange(frames) * FRAME / RATE
    question = text.endswith("?")
    f0 = melody(sounds, bounds, times, speaker, rng, question=question)
    loud = loudness(sounds, bounds, times, rng)
    controls = articulate(sounds, bounds, f0, loud, speaker)
    pressure = synthesize(controls, speaker.voice, rng)
    peak = speaker.level * rng.uniform(0.9, 1.1)
    signal = require("scipy.signal", extra="speech")
    microphone = signal.butter(2, MICROPHONE, "highpass", fs=RATE, output="sos")
    pressure = signal.sosfilt(microphone, pressure)
    noise = NOISE_FLOOR * rng.standard_normal(len(pressure))
    heard = peak / np.abs(pressure).max() * pressure + noise
    positions = [*np.rint(bounds[:-1] * RATE).astype(int).tolist(), len(heard)]
    return Recording(
        samples=np.rint(heard * 2**15).astype(np.int16),
        phones=[
            (*ends, sound.phone)
            for ends, sound in zip(pairwise(positions), sounds, strict=True)
        ],
    )
