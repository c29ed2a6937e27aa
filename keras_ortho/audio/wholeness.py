"""Checks that an audio file is complete, by what its container says of its length.

libsndfile either trusts the length in a file's header or truncates the file silently.
The headers of NIST SPHERE, RIFF and Ogg are read here. A truncated FLAC or MP3 file
fails to decode, or gives fewer samples than announced. A few other formats can be
checked indirectly, the rest cannot.
"""

import io
import re
import struct
from typing import Any

SPHERE_HEADER_BYTES = 1024
# What writers leave as the size of the samples if they cannot seek back; SoX rounds its
# 0x7ffff000 down to whole frames. Also 0, if the size of the file is 0, too.
RIFF_LENGTHS_UNKNOWN = (0xFFFFFFFF, 0x80000000, 0x7FFFFFFF)
SOX_LENGTHS_UNKNOWN = range(0x7FFFF000 - 255, 0x7FFFF000 + 1)
CHUNKS = (b"data", b"fact", b"fmt ", b"LIST", b"bext", b"cue ", b"id3 ")
# If the end of such a file is missing, reading it fails or gives fewer samples.
CODED = ("FLAC", "MP3", "OGG")
# For these formats, libsndfile takes the length from the header if the file is longer,
# provided that each sample has its own bytes or the packets are listed.
WITH_LENGTH = ("AIFF", "AU", "CAF", "RF64", "WAV")
SAMPLE_BY_SAMPLE = ("PCM", "FLOAT", "DOUBLE", "ULAW", "ALAW", "ALAC")


def whole(data: bytes, name: str) -> bytes:
    """Checks a SPHERE, RIFF or Ogg file; returns what libsndfile reads of it."""
    if _is_sphere(data):
        _check_sphere(data, name)
    if data.startswith(b"RIFF"):
        return _whole_riff(data, name)
    if data.startswith(b"OggS"):
        _check_ogg(data, name)
    return data


def promised_samples(file: Any, data: bytes, name: str) -> int:
    """Returns the samples per channel of a complete file; refuses what hides them."""
    if _is_sphere(data):
        return _promised_by_sphere(data, name)
    if not data.startswith(b"RIFF") and file.format not in CODED:
        _check_end(file, data, name)
    return file.frames


def _is_sphere(data: bytes) -> bool:
    return data.startswith(b"NIST_1A")


def _sphere_fields(data: bytes, field: bytes) -> list[bytes]:
    """Returns type and value, such as `-i 1000`, of each field of that name."""
    fields = data[:SPHERE_HEADER_BYTES].split(b"end_head")[0]
    pattern = rb"^" + field + rb"[ \t]+(.*?)[ \t\r]*$"
    return re.findall(pattern, fields, re.MULTILINE)


def _check_sphere(data: bytes, name: str) -> None:
    if len(data) < SPHERE_HEADER_BYTES:
        raise ValueError(
            f"The file is truncated: it has {len(data)} of the {SPHERE_HEADER_BYTES} "
            f"bytes of a SPHERE header. Received: {name}"
        )
    for field in _sphere_fields(data, b"sample_coding"):
        coding = field.split()[-1].decode("latin-1")
        if any(packer in coding for packer in ("shorten", "wavpack", "shortpack")):
            raise ValueError(
                f"The SPHERE file is compressed, with the coding {coding}: convert it "
                "with `sph2pipe -f wav` (shorten) or NIST's `w_decode -o pcm` (any "
                f"coding). Received: {name}"
            )


def _promised_by_sphere(data: bytes, name: str) -> int:
    """Returns the samples per channel in a SPHERE header, which libsndfile ignores."""
    values = _sphere_fields(data, b"sample_count")
    counts = [re.fullmatch(rb"-i[ \t]+(\d{1,18})", value) for value in values]
    if len(counts) != 1 or counts[0] is None:
        raise ValueError(
            "A SPHERE header must state the number of samples once, as `sample_count "
            f"-i` and an integer, not {[v.decode('latin-1') for v in values]}. "
            f"Received: {name}"
        )
    return int(counts[0][1])


def _check_end(file: Any, data: bytes, name: str) -> None:
    """Checks that the samples end where the header says, not where the file does.

    libsndfile takes the number of samples that are there, or that in the header if it
    is smaller. Bytes appended to a complete file therefore add no samples.
    """
    if file.format not in WITH_LENGTH or not file.subtype.startswith(SAMPLE_BY_SAMPLE):
        raise ValueError(
            f"A truncated file of {file.format} with {file.subtype} cannot be "
            f"recognized: convert it to WAV or FLAC. Received: {name}"
        )
    with type(file)(io.BytesIO(data + bytes(4096))) as longer:
        if longer.frames != file.frames:
            raise ValueError(
                "The file is truncated: its header states more samples than the "
                f"{file.frames} that it holds. Received: {name}"
            )


def _check_ogg(data: bytes, name: str) -> None:
    """Checks that the last page is complete, and marked as the last.

    libsndfile leaves out an incomplete page.
    """
    start, is_last = 0, False
    while data.startswith(b"OggS", start) and start + 27 <= len(data):
        is_last, segments = bool(data[start + 5] & 4), data[start + 26]
        start += 27
        start += segments + sum(data[start : start + segments])
    if not is_last or start > len(data):
        raise ValueError(
            f"The file is truncated: its last page is missing. Received: {name}"
        )


def _whole_riff(data: bytes, name: str) -> bytes:
    """Checks the chunks up to the samples, and mends those of careless writers."""
    start = 12  # after "RIFF", the length and "WAVE"
    while start + 8 <= len(data):
        chunk, size = struct.unpack_from("<4sI", data, start)
        start += 8
        if chunk == b"data":
            endless = size in RIFF_LENGTHS_UNKNOWN or size in SOX_LENGTHS_UNKNOWN
            if endless or (size == 0 and data[4:8] == bytes(4)):
                return data[: start - 4] + b"\xff" * 4 + data[start:]
        if start + size > len(data):
            raise ValueError(
                f"The file is truncated: its {chunk.decode('latin-1')!r} chunk should "
                f"have {size} bytes, but has {len(data) - start}. Received: {name}"
            )
        if chunk == b"data":
            break
        start += size
        if size % 2 and data[start : start + 4] in CHUNKS:  # Its padding is missing.
            data = data[:start] + b"\0" + data[start:]
        start += size % 2
    return data
