"""Computes the audio and log power in a record from the bytes of a recording."""

from typing import NamedTuple

import numpy as np

from keras_ortho.audio.files import decode_audio, resample_to_int16
from keras_ortho.audio.stft import FRAME_LENGTH, SAMPLE_RATE, log_power, stft

HIGHEST_RATE = 192_000  # Hz; a header with a higher rate is considered damaged.
LONGEST = 600  # s; the longest utterance of TIMIT takes 8


class Features(NamedTuple):
    """The audio of a recording and its log power, as in its record.

    Attributes:
        audio: int16 `[samples]`, at 8 kHz.
        log_power: float32 `[frames, 129]`, in dB.
    """

    audio: np.ndarray
    log_power: np.ndarray


def extract(data: bytes, *, name: str) -> Features:
    """Decodes a recording, resamples it to 8 kHz and computes its log power."""
    samples, rate = decode_audio(data, name=name, mono=True)
    if not SAMPLE_RATE <= rate <= HIGHEST_RATE:
        raise ValueError(
            f"The sampling rate must lie in {SAMPLE_RATE} .. {HIGHEST_RATE} Hz, "
            f"not {rate}. Received: {name}"
        )
    if len(samples) > LONGEST * rate:
        raise ValueError(
            f"Too long: {len(samples)} samples at {rate} Hz, more than {LONGEST} "
            f"seconds. Received: {name}"
        )
    if (samples == samples[0]).all():
        raise ValueError(f"Silent: all samples are {samples[0]}. Received: {name}")
    audio = resample_to_int16(samples, rate)
    if len(audio) < FRAME_LENGTH:
        raise ValueError(
            f"Too short: {len(audio)} samples at {SAMPLE_RATE} Hz, less than a frame "
            f"of {FRAME_LENGTH}. Received: {name}"
        )
    return Features(audio, log_power(stft(audio)))
