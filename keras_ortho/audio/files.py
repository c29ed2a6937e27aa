"""Audio files: NIST SPHERE, RIFF, FLAC and others that libsndfile reads.

TIMIT's `.WAV` files are NIST SPHERE: a text header of 1024 bytes, then the
samples. libsndfile takes a file's word for its length or cuts it silently; here a
file that holds less than its header promises is an error, as is one of which that
cannot be told, and no more is allocated than a file of its size can need.
"""

import io
import math
import os
import re
import struct
from typing import Any

import numpy as np

from keras_ortho.audio.stft import SAMPLE_RATE
from keras_ortho.checks import check_count
from keras_ortho.extras import require
from keras_ortho.reading import read_bytes

LARGEST = 2**30  # bytes of a file
# Bytes of the samples of all channels, 16 bits each, that a compressed file may hold
# however small it is: 17 minutes at 16 kHz.
DECODED = 2**25
SPHERE_HEADER_BYTES = 1024
RIFF_LENGTH_UNKNOWN = 0xFFFFFFFF  # what a writer to a pipe leaves in the header
# Of these libsndfile reads less than it finds, or nothing, where the end is missing.
CODED = ("FLAC", "MP3", "OGG")
# Of the others it says nothing. But here it looks at the length in the header, if each
# sample has its own bytes, or its packets are listed.
WITH_LENGTH = ("AIFF", "AU", "CAF", "RF64", "WAV")
SAMPLE_BY_SAMPLE = ("PCM", "FLOAT", "DOUBLE", "ULAW", "ALAW", "ALAC")
INT16 = np.iinfo(np.int16)


def read_audio(
    path: str | os.PathLike[str], *, mono: bool = False
) -> tuple[np.ndarray, int]:
    """Reads the first channel of an audio file as 16-bit samples.

    A file has at most 1 GiB. Its samples, 16 bits each, take at most 32 MiB, or twice
    the file's size where that is more: uncompressed files of any length fit in.

    Args:
        path: A NIST SPHERE, RIFF, FLAC, MP3, Ogg, AIFF, AU, CAF or RF64 file; its
            contents, not its name, say which. Of others that libsndfile reads, and of
            block codes within AIFF, AU, CAF and RF64, it cannot be told whether they
            are whole.
        mono: Whether more than one channel is an error. By default the first
            is taken.

    Returns:
        The samples, int16 `[samples]`, and the sampling rate in Hz.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is empty, no audio, truncated, or of a kind of which that
            cannot be told, too large, or not `mono` where that is asked for.

    Example:
    ```python
    samples, rate = read_audio("TIMIT/TRAIN/DR1/FCJF0/SA1.WAV")
    ```
    """
    return decode_audio(read_bytes(path, LARGEST), name=os.fspath(path), mono=mono)


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
    if not data:
        raise ValueError(f"The file is empty. Received: {name}")
    is_sphere = data.startswith(b"NIST_1A")
    if is_sphere and len(data) < SPHERE_HEADER_BYTES:
        raise ValueError(
            f"Truncated: {len(data)} bytes of a SPHERE header of "
            f"{SPHERE_HEADER_BYTES}. Received: {name}"
        )
    if data.startswith(b"RIFF"):
        _check_riff(data, name)
    if data.startswith(b"OggS"):
        _check_ogg(data, name)
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            rate, channels = file.samplerate, file.channels
            expected = _promised_by_sphere(data, name) if is_sphere else file.frames
            _check_promise(file, len(data), name)
            is_checked = is_sphere or data.startswith(b"RIFF")
            if not is_checked and file.format not in CODED:
                _check_end(file, data, name)
            samples = _read_all(file, name)
    except soundfile.LibsndfileError as error:
        raise ValueError(
            f"Not an audio file that can be read: {error.error_string} Received: {name}"
        ) from error
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
    rate = check_count("rate", rate)
    target_rate = check_count("target_rate", target_rate)
    if rate == target_rate:
        return samples.copy()
    divisor = math.gcd(rate, target_rate)
    resampled = require("scipy.signal", extra="speech").resample_poly(
        samples.astype(np.float64), target_rate // divisor, rate // divisor
    )
    return _to_int16(resampled, "samples")


def _to_int16(samples: np.ndarray, name: str) -> np.ndarray:
    """Rounds and clips floating point, in place."""
    if not np.isfinite(samples).all():
        raise ValueError(f"Samples that are not finite. Received: {name}")
    np.rint(samples, out=samples)
    return np.clip(samples, INT16.min, INT16.max, out=samples).astype(np.int16)


def _promised_by_sphere(data: bytes, name: str) -> int:
    """Samples per channel by a SPHERE header, which libsndfile does not look at."""
    fields = data[:SPHERE_HEADER_BYTES].split(b"end_head")[0]
    values = re.findall(rb"^sample_count[ \t]+(.*?)[ \t\r]*$", fields, re.MULTILINE)
    counts = [re.fullmatch(rb"-i[ \t]+(\d{1,18})", value) for value in values]
    if len(counts) != 1 or counts[0] is None:
        raise ValueError(
            "A SPHERE header must give the number of samples once, as `sample_count "
            f"-i` and a whole number, not {[v.decode('latin-1') for v in values]}. "
            f"Received: {name}"
        )
    return int(counts[0][1])


def _check_promise(file: Any, size: int, name: str) -> None:
    """Complains of more samples than a file of this size can be trusted to hold."""
    allowed = max(DECODED, 2 * size) // (file.channels * _sample_bytes(file))
    if file.frames > allowed:
        raise ValueError(
            f"Truncated or damaged: the header promises {file.frames} samples of "
            f"{file.channels} channels, in a file of {size} bytes; at most {allowed} "
            f"are read. Received: {name}"
        )


def _sample_bytes(file: Any) -> int:
    return {"FLOAT": 4, "DOUBLE": 8}.get(file.subtype, 2)


def _read_all(file: Any, name: str) -> np.ndarray:
    """All samples, int16 `[samples, channels]`."""
    dtype = {2: "int16", 4: "float32", 8: "float64"}[_sample_bytes(file)]
    samples = file.read(file.frames, dtype=dtype, always_2d=True)
    # libsndfile scales every encoding to 16 bits but floating point.
    if dtype == "int16":
        return samples
    # A power of 2, exact in either type but for what overflows.
    with np.errstate(over="ignore"):
        samples *= -float(INT16.min)
    return _to_int16(samples, name)


def _check_end(file: Any, data: bytes, name: str) -> None:
    """Checks that the samples end where the header says, not where the file does.

    libsndfile takes what is there, or what the header promises where that is less. So
    with something behind a whole file it finds no more samples.
    """
    if file.format not in WITH_LENGTH or not file.subtype.startswith(SAMPLE_BY_SAMPLE):
        raise ValueError(
            f"Whether a file of {file.format} with {file.subtype} is whole cannot be "
            f"told: write it as WAV or FLAC. Received: {name}"
        )
    with type(file)(io.BytesIO(data + bytes(4096))) as longer:
        if longer.frames != file.frames:
            raise ValueError(
                "Truncated: the header promises more samples than the "
                f"{file.frames} that are there. Received: {name}"
            )


def _check_ogg(data: bytes, name: str) -> None:
    """Checks that the last page is whole, and marked as the last.

    libsndfile leaves out a page that is not whole.
    """
    start, is_last = 0, False
    while data.startswith(b"OggS", start) and start + 27 <= len(data):
        is_last, segments = bool(data[start + 5] & 4), data[start + 26]
        start += 27
        start += segments + sum(data[start : start + segments])
    if not is_last or start > len(data):
        raise ValueError(f"Truncated: the last page is missing. Received: {name}")


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
