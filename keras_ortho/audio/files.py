"""Audio files, such as TIMIT's NIST SPHERE: what is truncated is an error."""

import io
import math
import os
import re
from typing import Any

import numpy as np

from keras_ortho.audio.stft import SAMPLE_RATE
from keras_ortho.checks import check, check_count
from keras_ortho.extras import require
from keras_ortho.files import FilePath, read_bytes

LARGEST = 2**30  # bytes of a file, and samples in it
# Fraction of floating-point samples that may exceed full scale, and are clipped.
CLIPPED = 0.01
# Encodings that libsndfile does not scale to 16 bits, or lets wrap around there.
FLOATING = ("FLOAT", "DOUBLE", "VORBIS", "OPUS")
# If the end of such a file is missing, reading it fails or gives fewer samples.
CODED = ("FLAC", "MP3", "OGG")


def read_audio(path: FilePath, *, mono: bool = False) -> tuple[np.ndarray, int]:
    """Reads the first channel of an audio file as 16-bit samples.

    Args:
        path: A NIST SPHERE, RIFF, FLAC, MP3, Ogg, AIFF, AU, CAF or RF64 file of at most
            1 GiB. Floating-point samples are clipped to a full scale of 1.
        mono: Whether a file with more than one channel is an error. Default: `False`.

    Returns:
        The samples, int16 `[samples]`, and the sampling rate in Hz.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is not as described, empty, truncated or not audio.

    Example:
    ```python
    samples, rate = read_audio("TIMIT/TRAIN/DR1/FCJF0/SA1.WAV")
    ```
    """
    return decode_audio(read_bytes(path, LARGEST), name=os.fspath(path), mono=mono)


def decode_audio(
    data: bytes, *, name: str, mono: bool = False
) -> tuple[np.ndarray, int]:
    """Decodes the bytes of an audio file, like `read_audio`; errors give the name."""
    soundfile = require("soundfile", extra="speech")
    try:
        if not data:
            raise ValueError("The file is empty.")
        data = _with_length(data)
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            samples = _read(file, data)
        if mono and samples.shape[1] != 1:
            raise ValueError(f"The file must have one channel, not {samples.shape[1]}.")
    except soundfile.LibsndfileError as error:
        raise ValueError(
            f"The file cannot be read as audio: {error.error_string} Received: {name}"
        ) from error
    except ValueError as error:
        raise ValueError(f"{error} Received: {name}") from error
    return np.ascontiguousarray(samples[:, 0]), file.samplerate


def resample_to_int16(
    samples: np.ndarray, rate: int, target_rate: int = SAMPLE_RATE
) -> np.ndarray:
    """Resamples 16-bit audio, and rounds the result to 16 bits.

    The polyphase filter with a Kaiser window of beta 5 is that of MATLAB's `resample`,
    with which Wisdom et al. prepared TIMIT.

    Args:
        samples: int16 `[samples]`.
        rate: Sampling rate of `samples` in Hz.
        target_rate: Sampling rate of the result in Hz. Default: 8000.

    Returns:
        int16 `[ceil(samples * target_rate / rate)]`, clipped to full scale.

    Raises:
        ValueError: If an argument is not as described.

    Example:
    >>> resample_to_int16(np.zeros(16000, "int16"), 16000).shape
    (8000,)
    """
    samples = np.asarray(samples)
    fits = samples.ndim == 1 and samples.dtype == np.int16
    received = f"{samples.dtype} of shape {samples.shape}"
    check(fits, "samples", "be int16 of shape [samples]", received)
    rate = check_count("rate", rate)
    divisor = math.gcd(rate, check_count("target_rate", target_rate))
    if rate == target_rate:
        return samples.copy()
    resampled = require("scipy.signal", extra="speech").resample_poly(
        samples.astype(np.float64), target_rate // divisor, rate // divisor
    )
    return _to_int16(resampled)


def _to_int16(samples: np.ndarray) -> np.ndarray:
    limits = np.iinfo(np.int16)
    return np.clip(np.rint(samples), limits.min, limits.max).astype(np.int16)


def _with_length(data: bytes) -> bytes:
    """Writes its length into a RIFF file whose writer could not seek back to do so."""
    start = data.find(b"data", 12) + 8
    if not data.startswith(b"RIFF") or not 8 < start <= len(data):
        return data
    stated = int.from_bytes(data[start - 4 : start], "little")
    # SoX, ffmpeg and others leave the largest number, Kaldi leaves zeros.
    if stated <= LARGEST and (stated or any(data[4:8])):
        return data
    length = (len(data) - start).to_bytes(4, "little")
    return data[: start - 4] + length + data[start:]


def _read(file: Any, data: bytes) -> np.ndarray:
    """Returns all samples of an open file, int16 `[samples, channels]`."""
    if file.frames > LARGEST:  # Before memory is allocated for them.
        raise ValueError(
            f"The file is damaged or too long: its header states {file.frames} samples."
        )
    promised = _promised(file, data)
    floating = file.subtype in FLOATING
    samples = file.read(dtype="float32" if floating else "int16", always_2d=True)
    if len(samples) != promised:
        raise ValueError(
            f"The file is truncated or damaged: its header states {promised} samples, "
            f"but it holds {len(samples)}."
        )
    if not len(samples):
        raise ValueError("The file contains no samples.")
    if not floating:
        return samples
    beyond = np.count_nonzero(~(np.abs(samples) <= 1))  # NaN, too.
    if not np.isfinite(samples).all() or (
        file.format not in CODED and beyond > CLIPPED * samples.size
    ):
        raise ValueError(
            "Floating-point samples must be finite and, but for a few peaks, between "
            f"-1 and 1: {beyond} of {samples.size} samples are not."
        )
    return _to_int16(samples * 32768.0)


def _promised(file: Any, data: bytes) -> int:
    """Returns the samples per channel that the header states."""
    if file.format in CODED:
        return file.frames
    if file.format == "NIST":  # libsndfile ignores the number in its header.
        header = data[:1024].split(b"end_head")[0].decode("latin-1")
        coding = re.search(r"^sample_coding.*(shorten|wavpack|shortpack)", header, re.M)
        if coding:
            raise ValueError(
                f"The SPHERE file is compressed, with the coding {coding[1]}: convert "
                "it with `sph2pipe -f wav` or NIST's `w_decode -o pcm`."
            )
        count = re.search(r"^sample_count[ \t]+-i[ \t]+(\d+)", header, re.M)
        if not count:
            raise ValueError("A SPHERE header must state the number of samples once.")
        return int(count[1])
    # Of others, libsndfile reads as many samples as the header states, or there are.
    with type(file)(io.BytesIO(data + bytes(4096))) as longer:
        if longer.frames != file.frames:
            raise ValueError(
                "The file is truncated, or its header does not state the number of "
                f"samples: it holds {file.frames}. Convert it to WAV or FLAC."
            )
    return file.frames
