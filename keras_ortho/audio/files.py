"""Audio files: NIST SPHERE, RIFF, FLAC, and whatever else libsndfile reads.

TIMIT's `.WAV` files are NIST SPHERE: a text header of 1024 bytes, then the
samples. libsndfile takes a file's word for its length or cuts it silently; here a
file that holds less than its header promises is an error.
"""

import io
import math
import os
import re
import struct
from pathlib import Path

import numpy as np

from keras_ortho.audio.stft import SAMPLE_RATE
from keras_ortho.extras import require

SPHERE_HEADER_BYTES = 1024
RIFF_LENGTH_UNKNOWN = 0xFFFFFFFF  # what a writer to a pipe leaves in the header
INT16 = np.iinfo(np.int16)


def read_audio(
    path: str | os.PathLike[str], *, mono: bool = False
) -> tuple[np.ndarray, int]:
    """Reads the first channel of an audio file as 16-bit samples.

    Args:
        path: A NIST SPHERE, RIFF, FLAC or other file that libsndfile reads; its
            contents, not its name, say which.
        mono: Whether more than one channel is an error. By default the first
            is taken.

    Returns:
        The samples, int16 `[samples]`, and the sampling rate in Hz.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is empty, no audio, truncated, or not `mono` where that
            is asked for.

    Example:
    ```python
    samples, rate = read_audio("TIMIT/TRAIN/DR1/FCJF0/SA1.WAV")
    ```
    """
    return decode_audio(Path(path).read_bytes(), name=os.fspath(path), mono=mono)


def decode_audio(
    data: bytes, *, name: str, mono: bool = False
) -> tuple[np.ndarray, int]:
    """As `read_audio`, from the bytes of a file.

    Args:
        data: The whole file.
        name: What to call it in errors.
        mono: As for `read_audio`.

    Returns:
        The samples, int16 `[samples]`, and the sampling rate in Hz.

    Raises:
        ValueError: As `read_audio`.
    """
    soundfile = require("soundfile", extra="speech")
    promised = _promised_samples(data, name)
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            rate, channels, frames = file.samplerate, file.channels, file.frames
            # libsndfile scales every encoding to 16 bits but floating point.
            if file.subtype in ("FLOAT", "DOUBLE"):
                samples = _to_int16(file.read(always_2d=True) * -float(INT16.min), name)
            else:
                samples = file.read(dtype="int16", always_2d=True)
    except soundfile.LibsndfileError as error:
        raise ValueError(
            f"Not an audio file that can be read: {error.error_string} Received: {name}"
        ) from error
    expected = frames if promised is None else promised
    if len(samples) != expected:
        raise ValueError(
            f"Truncated or damaged: the header promises {expected} samples, "
            f"{len(samples)} are there. Received: {name}"
        )
    if not len(samples):
        raise ValueError(f"The file holds no samples. Received: {name}")
    if mono and channels != 1:
        raise ValueError(f"One channel expected, not {channels}. Received: {name}")
    return np.ascontiguousarray(samples[:, 0]), rate


def resample_to_int16(
    samples: np.ndarray, rate: int, target_rate: int = SAMPLE_RATE
) -> np.ndarray:
    """Resamples 16-bit audio, and rounds it to 16 bits again.

    A polyphase filter with a Kaiser window of beta 5, the design of MATLAB's
    `resample`, with which Wisdom et al. prepared TIMIT.

    Args:
        samples: int16 `[samples]`.
        rate: Sampling rate of `samples` in Hz.
        target_rate: Sampling rate of the result in Hz.

    Returns:
        int16 `[ceil(samples * target_rate / rate)]`, clipped where the filter
        overshoots full scale.

    Raises:
        ValueError: If `samples` is not int16 `[samples]`, or a rate not positive.

    Example:
    >>> resample_to_int16(np.zeros(16000, "int16"), 16000).shape
    (8000,)
    """
    if samples.ndim != 1 or samples.dtype != np.int16:
        raise ValueError(
            "`samples` must be int16 of shape [samples]. "
            f"Received: {samples.dtype} of shape {samples.shape}"
        )
    if rate < 1 or target_rate < 1:
        raise ValueError(
            "`rate` and `target_rate` must be positive. "
            f"Received: {rate} and {target_rate}"
        )
    if rate == target_rate:
        return samples.copy()
    divisor = math.gcd(rate, target_rate)
    resampled = require("scipy.signal", extra="speech").resample_poly(
        samples.astype(np.float64), target_rate // divisor, rate // divisor
    )
    return _to_int16(resampled, "samples")


def _to_int16(samples: np.ndarray, name: str) -> np.ndarray:
    if not np.isfinite(samples).all():
        raise ValueError(f"Samples that are not finite. Received: {name}")
    return np.clip(np.rint(samples), INT16.min, INT16.max).astype(np.int16)


def _promised_samples(data: bytes, name: str) -> int | None:
    """Samples per channel by a SPHERE header; complains of a RIFF file cut short."""
    if not data:
        raise ValueError(f"The file is empty. Received: {name}")
    if data.startswith(b"NIST_1A"):
        if len(data) < SPHERE_HEADER_BYTES:
            raise ValueError(
                f"Truncated: {len(data)} bytes of a SPHERE header of "
                f"{SPHERE_HEADER_BYTES}. Received: {name}"
            )
        count = re.search(rb"^sample_count -i (\d+)", data[:SPHERE_HEADER_BYTES], re.M)
        return int(count[1]) if count else None
    if data.startswith(b"RIFF"):
        _check_riff(data, name)
    return None


def _check_riff(data: bytes, name: str) -> None:
    start = 12  # after "RIFF", the length and "WAVE"
    while start + 8 <= len(data):
        chunk, size = struct.unpack_from("<4sI", data, start)
        start += 8
        if start + size > len(data) and size != RIFF_LENGTH_UNKNOWN:
            raise ValueError(
                f"Truncated: the {chunk.decode('latin-1')!r} chunk promises {size} "
                f"bytes, {len(data) - start} are there. Received: {name}"
            )
        if chunk == b"data":
            return
        start += size + size % 2
