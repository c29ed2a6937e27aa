"""Audio files: NIST SPHERE, RIFF, FLAC and others that libsndfile reads.

TIMIT's `.WAV` files are NIST SPHERE: a text header of 1024 bytes, then the samples.
libsndfile either trusts the length in a file's header or truncates the file silently.
Here a file with fewer samples than its header promises is an error, as is a file for
which this cannot be checked, and no more memory is allocated than a file of its size
can need.
"""

import io
import math
import os
from typing import Any

import numpy as np

from keras_ortho.audio.stft import SAMPLE_RATE
from keras_ortho.audio.wholeness import promised_samples, whole
from keras_ortho.checks import check_count
from keras_ortho.extras import require
from keras_ortho.reading import read_bytes

LARGEST = 2**30  # bytes of a file
# Bytes of samples, 16 bits each, of all channels together that a compressed file of any
# size may contain: ten minutes at 192 kHz.
DECODED = 2**28
BLOCK = 2**18  # samples of each channel that are read at once
# libsndfile's number of samples if the header does not give it.
UNKNOWN = 2**63 - 1
# Fraction of floating-point samples that may exceed full scale, and are clipped.
CLIPPED = 0.01
INT16 = np.iinfo(np.int16)
HIGHEST_RATE = 1_000_000  # Hz, for resampling
# Encodings whose loud samples libsndfile lets wrap around at 16 bits.
WRAPPING = ("VORBIS", "OPUS")


def read_audio(
    path: str | os.PathLike[str], *, mono: bool = False
) -> tuple[np.ndarray, int]:
    """Reads the first channel of an audio file as 16-bit samples.

    A file may have at most 1 GiB. Its samples, 16 bits each, may take at most 256 MiB,
    or twice the file's size if that is more, so uncompressed files of any length fit.
    Floating-point samples have a full scale of 1 and are clipped to it.

    Args:
        path: A NIST SPHERE, RIFF, FLAC, MP3, Ogg, AIFF, AU, CAF or RF64 file,
            identified by its contents, not by its name. Other files that libsndfile
            reads, and block codes within AIFF, AU, CAF and RF64, are refused, because
            it cannot be checked that they are complete.
        mono: Whether a file with more than one channel is an error. Default: `False`,
            the first channel is read.

    Returns:
        The samples, int16 `[samples]`, and the sampling rate in Hz.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If the file is empty, is not audio, is truncated, is of a kind for
            which this cannot be checked, is too large, or has more than one channel
            and `mono` is `True`; or if more than a hundredth of floating-point samples
            exceed full scale, or one is not finite.

    Example:
    ```python
    samples, rate = read_audio("TIMIT/TRAIN/DR1/FCJF0/SA1.WAV")
    ```
    """
    return decode_audio(read_bytes(path, LARGEST), name=os.fspath(path), mono=mono)


def decode_audio(
    data: bytes, *, name: str, mono: bool = False
) -> tuple[np.ndarray, int]:
    """Decodes the bytes of an audio file, like `read_audio`.

    Args:
        data: The whole file.
        name: Name of the file for error messages.
        mono: As for `read_audio`. Default: `False`.

    Returns:
        The samples, int16 `[samples]`, and the sampling rate in Hz.

    Raises:
        ValueError: As for `read_audio`.
    """
    soundfile = require("soundfile", extra="speech")
    if not data:
        raise ValueError(f"The file is empty. Received: {name}")
    data = whole(data, name)
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            rate, channels = file.samplerate, file.channels
            _check_promise(file, len(data), name)
            expected = promised_samples(file, data, name)
            samples = _read_all(file, name)
    except soundfile.LibsndfileError as error:
        raise ValueError(
            f"The file cannot be read as audio: {error.error_string} Received: {name}"
        ) from error
    if len(samples) != expected:
        raise ValueError(
            f"The file is truncated or damaged: its header states {expected} samples, "
            f"but it holds {len(samples)}. Received: {name}"
        )
    if not len(samples):
        raise ValueError(f"The file contains no samples. Received: {name}")
    if mono and channels != 1:
        raise ValueError(
            f"The file must have one channel, not {channels}. Received: {name}"
        )
    return np.ascontiguousarray(samples[:, 0]), rate


def resample_to_int16(
    samples: np.ndarray, rate: int, target_rate: int = SAMPLE_RATE
) -> np.ndarray:
    """Resamples 16-bit audio, and rounds the result to 16 bits.

    It uses a polyphase filter with a Kaiser window of beta 5, the design of MATLAB's
    `resample`, with which Wisdom et al. prepared TIMIT.

    Args:
        samples: int16 `[samples]`.
        rate: Sampling rate of `samples` in Hz.
        target_rate: Sampling rate of the result in Hz. Default: 8000.

    Returns:
        int16 `[ceil(samples * target_rate / rate)]`, clipped where the filter
        overshoots full scale.

    Raises:
        ValueError: If `samples` is not int16 `[samples]`, or a rate is not a positive
            integer of at most 1 MHz.

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
        # The filter grows with the rates; no sound has a higher one.
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
    """Rounds and clips floating-point samples, in place."""
    if not np.isfinite(samples).all():
        raise ValueError(
            f"The file contains samples that are NaN or infinite. Received: {name}"
        )
    np.rint(samples, out=samples)
    return np.clip(samples, INT16.min, INT16.max, out=samples).astype(np.int16)


def _check_promise(file: Any, size: int, name: str) -> None:
    """Refuses more samples than a file of this size can be trusted to contain."""
    if file.frames == UNKNOWN:
        raise ValueError(
            "The header does not state the number of samples, so a truncated file "
            f"could not be recognized. Received: {name}"
        )
    allowed = max(DECODED, 2 * size) // (file.channels * _sample_bytes(file))
    if file.frames > allowed:
        raise ValueError(
            f"The file is damaged or too long: its header states {file.frames} samples "
            f"in {file.channels} channels, in {size} bytes; at most {allowed} samples "
            f"are read. Received: {name}"
        )


def _sample_bytes(file: Any) -> int:
    return {"FLOAT": 4, "DOUBLE": 8}.get(file.subtype, 2)


def _read_all(file: Any, name: str) -> np.ndarray:
    """Reads all samples, int16 `[samples, channels]`."""
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
    # libsndfile scales every encoding to 16 bits, except floating point.
    if dtype == "int16":
        return samples
    # Scaling by a power of 2 is exact in either dtype, unless it overflows.
    with np.errstate(over="ignore"):
        samples *= -float(INT16.min)
    beyond = np.count_nonzero(np.abs(samples) > -float(INT16.min))
    if file.subtype not in WRAPPING and beyond > CLIPPED * samples.size:
        raise ValueError(
            "Floating-point samples must lie between -1 and 1, except for a few "
            f"peaks. Received: {name}, with {beyond} of {samples.size} samples beyond"
        )
    return _to_int16(samples, name)
