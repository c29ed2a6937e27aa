"""Speech signals: audio files, spectra, resynthesis, noise and the Wiener filter."""

from keras_ortho.audio.files import read_audio, resample_to_int16
from keras_ortho.audio.noises import NOISES, babble, excerpt, mix
from keras_ortho.audio.samples import to_float, write_wav
from keras_ortho.audio.stft import (
    FRAME_LENGTH,
    HOP_LENGTH,
    NUM_BINS,
    POWER_FLOOR,
    SAMPLE_RATE,
    SILENCE_DB,
    istft,
    log_power,
    magnitude,
    resynthesize,
    resynthesize_reference,
    stft,
)
from keras_ortho.audio.wiener import wiener

__all__ = [
    "FRAME_LENGTH",
    "HOP_LENGTH",
    "NOISES",
    "NUM_BINS",
    "POWER_FLOOR",
    "SAMPLE_RATE",
    "SILENCE_DB",
    "babble",
    "excerpt",
    "istft",
    "log_power",
    "magnitude",
    "mix",
    "read_audio",
    "resample_to_int16",
    "resynthesize",
    "resynthesize_reference",
    "stft",
    "to_float",
    "wiener",
    "write_wav",
]
