"""Reads of files whose sizes are held against bounds before anything is allocated.

A file's header may promise any size, and a compressed file may unpack to a thousand
times its own. Readers ask here for no more than they can use, so that a damaged file
costs an error and not the memory of the machine.
"""

import json
import os
import stat
from pathlib import Path
from typing import Any, Protocol

import numpy as np

SMALL = 48 * 2**20  # bytes that a compressed file of any size may unpack to
EXPANSION = 2  # how many times its own size a larger one may

_BLOCK = 2**18


class Stream(Protocol):
    """What gives bytes until it gives none."""

    def read(self, size: int, /) -> bytes:
        """Gives at most `size` bytes."""


def check_size(path: str | os.PathLike[str], largest: int) -> int:
    """Checks that a path is a regular file of a size that can be right.

    Args:
        path: The file.
        largest: Most bytes that it may have.

    Returns:
        Its size in bytes.

    Raises:
        OSError: If there is no such file.
        ValueError: If it is no regular file, or a larger one.
    """
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(f"A file expected. Received: {os.fspath(path)}")
        # To open a pipe would wait for its other end, and a device has none.
        raise ValueError(f"A regular file expected. Received: {os.fspath(path)}")
    if status.st_size > largest:
        raise ValueError(
            f"A file of this kind has at most {largest} bytes. "
            f"Received: {os.fspath(path)} of {status.st_size} bytes"
        )
    return status.st_size


def read_bytes(path: str | os.PathLike[str], largest: int) -> bytes:
    """Reads a whole file that is no larger than it may be.

    Args:
        path: The file.
        largest: Most bytes that it may have.

    Returns:
        Its contents.

    Raises:
        OSError: If it cannot be read.
        ValueError: As `check_size`.
    """
    check_size(path, largest)
    return Path(path).read_bytes()


def read_json(path: str | os.PathLike[str], largest: int) -> Any:
    """Reads a file of JSON.

    Args:
        path: The file.
        largest: Most bytes that it may have.

    Returns:
        The value.

    Raises:
        OSError: If it cannot be read.
        ValueError: As `check_size`, or if it is no JSON.
    """
    content = read_bytes(path, largest)
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{os.fspath(path)} must be a file of JSON. Received: {error}"
        ) from error


def unpacked_limit(size: int) -> int:
    """How many bytes a compressed file may unpack to.

    Args:
        size: Its own size in bytes.

    Returns:
        48 MiB, or twice its size where that is more.

    Example:
    >>> unpacked_limit(100), unpacked_limit(10**8)
    (50331648, 200000000)
    """
    return max(SMALL, EXPANSION * size)


def fill(stream: Stream, size: int) -> tuple[np.ndarray, bool]:
    """Reads the bytes of an array, and looks whether more follow.

    Args:
        stream: What to read from.
        size: Bytes to read, bounded by the caller.

    Returns:
        uint8 `[read]`, of `size` bytes or less where the stream has no more; and
        whether the stream has more than `size`.
    """
    values = np.empty(size, np.uint8)
    count = 0
    while count < size:
        block = stream.read(min(_BLOCK, size - count))
        if not block:
            break
        values[count : count + len(block)] = np.frombuffer(block, np.uint8)
        count += len(block)
    return values[:count], count == size and bool(stream.read(1))
