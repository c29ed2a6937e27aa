"""Audio files: NIST SPHERE, RIFF, FLAC and others that libsndfile reads.

TIMIT's `.WAV` files are NIST SPHERE: a text header of 1024 bytes, then the
samples. libsndfile takes a file's word for its length or cuts it silently; here a
file that holds less than its header promises is an error, as is one of which that
cannot be told, and no more is allocated than a file of its size can need.
"""

import io
import math
import os
from typing import Any

import numpy as np

from keras_ortho.audio.stft import SAMPLE_RATE
from keras_ortho.audio.wholeness import check_bytes, promised_samples
from keras_ortho.checks import check_count
from keras_ortho.extras import require
from keras_ortho.reading import read_bytes

LARGEST = 2**30  # bytes of a file
# Bytes of the samples of all channels, 16 bits each, that a compressed file may hold
# however small it is: ten minutes at 192 kHz.
DECODED = 2**28
BLOCK = 2**18  # samples of each channel that are read at once
# What libsndfile says where a header leaves the number of samples open.
UNKNOWN = 2**63 - 1
# Share of samples of floating point that may be beyond full scale, and are clipped.
CLIPPED = 0.01
INT16 = np.iinfo(np.int16)
HIGHEST_RATE = 1_000_000  # Hz, of what is resampled
# Encodings of which libsndfile lets loud samples wrap around at 16 bits.
WRAPPING = ("VORBIS", "OPUS")


def read_audio(
    path: str | os.PathLike[str], *, mono: bool = False
) -> tuple[np.ndarray, int]:
    """Reads the first channel of an audio file as 16-bit samples.

    A file has at most 1 GiB. Its samples, 16 bits each, take at most 256 MiB, or twice
    the file's size where that is more: uncompressed files of any length fit in.
    Floating point has a full scale of 1; what is beyond it is clipped.

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
            cannot be told, too large, or not `mono` where that is asked for. If more
            than a hundredth of samples of floating point are beyond full scale.

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
        mono: As for `read_audio`. Default: `False`.

    Returns:
        The samples, int16 `[samples]`, and the sampling rate in Hz.

    Raises:
        ValueError: As `read_audio`.
    """
    soundfile = require("soundfile", extra="speech")
    if not data:
        raise ValueError(f"The file is empty. Received: {name}")
    check_bytes(data, name)
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            rate, channels = file.samplerate, file.channels
            _check_promise(file, len(data), name)
            expected = promised_samples(file, data, name)
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
        target_rate: Sampling rate of the result in Hz. Default: 8000.

    Returns:
        int16 `[ceil(samples * target_rate / rate)]`, clipped where the filter
        overshoots full scale.

    Raises:
        ValueError: If `samples` is not int16 `[samples]`, or a rate not positive or
            above 1 MHz.

    Example:
    >>> resample_to_int16(np.zeros(16000, "int16"), 16000).shape
    (8000,)
    """
    samples = np.asarray(samples)
    if samples.ndim != 1 or samples.dtype != np.int16:
        raise ValueError(
            "`samples` must be int16 of shape [samples]. "
            f"Received: {samples.dtype} of shape {samples.shape}"
        )
    for name, each in (("rate", rate), ("target_rate", target_rate)):
        # The filter is as long as the rates; no sound has a higher one.
        if check_count(name, each) > HIGHEST_RATE:
            raise ValueError(
                f"`{name}` must be at most {HIGHEST_RATE} Hz. Received: {name}={each}"
            )
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


def _check_promise(file: Any, size: int, name: str) -> None:
    """Complains of more samples than a file of this size can be trusted to hold."""
    if file.frames == UNKNOWN:
        raise ValueError(
            "The header does not say how many samples there are, so it cannot be told "
            f"whether they all are. Received: {name}"
        )
    allowed = max(DECODED, 2 * size) // (file.channels * _sample_bytes(file))
    if file.frames > allowed:
        raise ValueError(
            f"Damaged or too long: the header promises {file.frames} samples of "
            f"{file.channels} channels, in a file of {size} bytes; at most {allowed} "
            f"are read. Received: {name}"
        )


def _sample_bytes(file: Any) -> int:
    return {"FLOAT": 4, "DOUBLE": 8}.get(file.subtype, 2)


def _read_all(file: Any, name: str) -> np.ndarray:
    """All samples, int16 `[samples, channels]`."""
    dtype = {2: "int16", 4: "float32", 8: "float64"}[_sample_bytes(file)]
    if file.subtype in WRAPPING:
        dtype = "float32"
    # Block by block, as a header may promise more than there is.
    blocks = [file.read(0, dtype=dtype, always_2d=True)]
    for start in range(0, file.frames, BLOCK):
        length = min(BLOCK, file.frames - start)
        blocks.append(file.read(length, dtype=dtype, always_2d=True))
        if len(blocks[-1]) < length:
            break
    samples = np.concatenate(blocks)
    # libsndfile scales every encoding to 16 bits but floating point.
    if dtype == "int16":
        return samples
    # A power of 2, exact in either type but for what overflows.
    with np.errstate(over="ignore"):
        samples *= -float(INT16.min)
    beyond = np.count_nonzero(np.abs(samples) > -float(INT16.min))
    if file.subtype not in WRAPPING and beyond > CLIPPED * samples.size:
        raise ValueError(
            "Full scale must be 1 in floating point, but for peaks. Received: "
            f"{name}, with {beyond} of {samples.size} samples beyond"
        )
    return _to_int16(samples, name)
