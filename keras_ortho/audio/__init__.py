"""Speech signals: audio files, spectra, resynthesis, noise and the Wiener filter."""

from keras_ortho.audio.files import decode_audio, read_audio, resample_to_int16
from keras_ortho.audio.noises import (
    NOISES,
    at_level,
    babble,
    excerpt,
    late_reverberation,
    mix,
)
from keras_ortho.audio.samples import to_float, to_int16, write_wav
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
    "at_level",
    "babble",
    "decode_audio",
    "excerpt",
    "istft",
    "late_reverberation",
    "log_power",
    "magnitude",
    "mix",
    "read_audio",
    "resample_to_int16",
    "resynthesize",
    "resynthesize_reference",
    "stft",
    "to_float",
    "to_int16",
    "wiener",
    "write_wav",
]
