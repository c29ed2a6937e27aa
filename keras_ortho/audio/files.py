"""Audio files: NIST SPHERE, RIFF, FLAC and others that libsndfile reads.

TIMIT's `.WAV` files are NIST SPHERE: a text header of 1024 bytes, then the samples.
libsndfile either trusts the length in a file's header or truncates the file silently.
Here a file with fewer samples than its header promises is an error, as is a file for
which this cannot be checked, and no more memory is allocated than a file of its size
can need. The headers of NIST SPHERE, RIFF and Ogg are read; a truncated FLAC or MP3
file fails to decode, or gives fewer samples than announced; a few other formats can be
checked indirectly, the rest cannot.
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
# Bytes of samples, 16 bits each, of all channels together that a compressed file of any
# size may contain: ten minutes at 192 kHz.
DECODED = 2**28
UNKNOWN = 2**63 - 1  # libsndfile's number of samples if the header does not give it
# Fraction of floating-point samples that may exceed full scale, and are clipped.
CLIPPED = 0.01
HIGHEST_RATE = 1_000_000  # Hz, for resampling
# Encodings whose loud samples libsndfile lets wrap around at 16 bits.
WRAPPING = ("VORBIS", "OPUS")
SPHERE_HEADER_BYTES = 1024
# What writers leave as the size of the samples if they cannot seek back; SoX rounds its
# 0x7ffff000 down to whole frames. Also 0, if the size of the file is 0, too.
RIFF_LENGTHS_UNKNOWN = (
    *(0xFFFFFFFF, 0x80000000, 0x7FFFFFFF),
    *range(0x7FFFF000 - 255, 0x7FFFF000 + 1),
)
CHUNKS = (b"data", b"fact", b"fmt ", b"LIST", b"bext", b"cue ", b"id3 ")
# If the end of such a file is missing, reading it fails or gives fewer samples.
CODED = ("FLAC", "MP3", "OGG")
# For these formats, libsndfile takes the length from the header if the file is longer,
# provided that each sample has its own bytes or the packets are listed.
WITH_LENGTH = ("AIFF", "AU", "CAF", "RF64", "WAV")
SAMPLE_BY_SAMPLE = ("PCM", "FLOAT", "DOUBLE", "ULAW", "ALAW", "ALAC")


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
    try:
        samples, rate = _decode(data, soundfile.SoundFile)
        if mono and samples.shape[1] != 1:
            raise ValueError(f"The file must have one channel, not {samples.shape[1]}.")
    except soundfile.LibsndfileError as error:
        raise ValueError(
            f"The file cannot be read as audio: {error.error_string} Received: {name}"
        ) from error
    except ValueError as error:
        raise ValueError(f"{error} Received: {name}") from error
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
    return _to_int16(resampled)


def _to_int16(samples: np.ndarray) -> np.ndarray:
    """Rounds and clips floating-point samples, in place."""
    np.rint(samples, out=samples)
    limits = np.iinfo(np.int16)
    return np.clip(samples, limits.min, limits.max, out=samples).astype(np.int16)


def _decode(data: bytes, opened: Any) -> tuple[np.ndarray, int]:
    """Returns all samples, int16 `[samples, channels]`, and their rate."""
    promised = None
    if not data:
        raise ValueError("The file is empty.")
    if data.startswith(b"NIST_1A"):
        promised = _promised_by_sphere(data)
    elif data.startswith(b"RIFF"):
        data = _whole_riff(data)
    elif data.startswith(b"OggS"):
        _check_ogg(data)
    with opened(io.BytesIO(data)) as file:
        if file.frames == UNKNOWN:
            raise ValueError(
                "The header does not state the number of samples, so a truncated file "
                "could not be recognized."
            )
        wide = {"FLOAT": "float32", "DOUBLE": "float64"}.get(file.subtype)
        size = np.dtype(wide or "int16").itemsize * file.channels
        allowed = max(DECODED, 2 * len(data)) // size
        if file.frames > allowed:
            raise ValueError(
                f"The file is damaged or too long: its header states {file.frames} "
                f"samples in {file.channels} channels, in {len(data)} bytes; at most "
                f"{allowed} samples are read."
            )
        if promised is None:
            promised = file.frames
            if not data.startswith(b"RIFF") and file.format not in CODED:
                _check_end(file, data)
        wraps = file.subtype in WRAPPING
        dtype = "float32" if wraps else wide or "int16"
        samples = file.read(file.frames, dtype, always_2d=True)
    if len(samples) != promised:
        raise ValueError(
            f"The file is truncated or damaged: its header states {promised} samples, "
            f"but it holds {len(samples)}."
        )
    if not len(samples):
        raise ValueError("The file contains no samples.")
    # libsndfile scales every encoding to 16 bits, except floating point.
    if dtype == "int16":
        return samples, file.samplerate
    if not np.isfinite(samples).all():
        raise ValueError("The file contains samples that are NaN or infinite.")
    beyond = np.count_nonzero(np.abs(samples) > 1)
    if not wraps and beyond > CLIPPED * samples.size:
        raise ValueError(
            "Floating-point samples must lie between -1 and 1, except for a few peaks, "
            f"but {beyond} of {samples.size} samples do not."
        )
    # Scaling by a power of 2 is exact, unless it overflows and is clipped.
    with np.errstate(over="ignore"):
        return _to_int16(32768 * samples), file.samplerate


def _promised_by_sphere(data: bytes) -> int:
    """Returns the samples per channel in a SPHERE header, which libsndfile ignores."""
    if len(data) < SPHERE_HEADER_BYTES:
        raise ValueError(
            f"The file is truncated: it has {len(data)} of the {SPHERE_HEADER_BYTES} "
            "bytes of a SPHERE header."
        )
    header = data[:SPHERE_HEADER_BYTES].split(b"end_head")[0].decode("latin-1")
    fields = re.findall(r"^(\w+)[ \t]+(-\w+)[ \t]*(.*?)[ \t\r]*$", header, re.MULTILINE)
    for name, _, coding in fields:
        if name == "sample_coding" and re.search("shorten|wavpack|shortpack", coding):
            raise ValueError(
                f"The SPHERE file is compressed, with the coding {coding}: convert it "
                "with `sph2pipe -f wav` (shorten) or NIST's `w_decode -o pcm` (any "
                "coding)."
            )
    counts = [(kind, value) for name, kind, value in fields if name == "sample_count"]
    if len(counts) != 1 or not re.fullmatch(r"-i \d{1,18}", " ".join(counts[0])):
        raise ValueError(
            "A SPHERE header must state the number of samples once, as `sample_count "
            f"-i` and an integer, not {counts}."
        )
    return int(counts[0][1])


def _check_end(file: Any, data: bytes) -> None:
    """Checks that the samples end where the header says, not where the file does.

    libsndfile takes the number of samples that are there, or that in the header if it
    is smaller. Bytes appended to a complete file therefore add no samples.
    """
    if file.format not in WITH_LENGTH or not file.subtype.startswith(SAMPLE_BY_SAMPLE):
        raise ValueError(
            f"A truncated file of {file.format} with {file.subtype} cannot be "
            "recognized: convert it to WAV or FLAC."
        )
    with type(file)(io.BytesIO(data + bytes(4096))) as longer:
        if longer.frames != file.frames:
            raise ValueError(
                "The file is truncated: its header states more samples than the "
                f"{file.frames} that it holds."
            )


def _check_ogg(data: bytes) -> None:
    """Checks that the last page is complete, and marked as the last.

    libsndfile leaves out an incomplete page.
    """
    start, is_last = 0, False
    while data.startswith(b"OggS", start) and start + 27 <= len(data):
        is_last, segments = bool(data[start + 5] & 4), data[start + 26]
        start += 27
        start += segments + sum(data[start : start + segments])
    if not is_last or start > len(data):
        raise ValueError("The file is truncated: its last page is missing.")


def _whole_riff(data: bytes) -> bytes:
    """Checks the chunks up to the samples, and mends those of careless writers."""
    start = 12  # after "RIFF", the length and "WAVE"
    while start + 8 <= len(data):
        chunk, size = struct.unpack_from("<4sI", data, start)
        start += 8
        endless = size in RIFF_LENGTHS_UNKNOWN or (size == 0 and not any(data[4:8]))
        if chunk == b"data" and endless:
            return data[: start - 4] + b"\xff" * 4 + data[start:]
        if start + size > len(data):
            raise ValueError(
                f"The file is truncated: its {chunk.decode('latin-1')!r} chunk should "
                f"have {size} bytes, but has {len(data) - start}."
            )
        if chunk == b"data":
            break
        start += size
        if size % 2 and data[start : start + 4] in CHUNKS:  # Its padding is missing.
            data = data[:start] + b"\0" + data[start:]
        start += size % 2
    return data
