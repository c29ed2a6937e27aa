"""Reading files with bounds on their sizes, checked before memory is allocated.

The header of a file may state any size, and a compressed file may unpack to a thousand
times its own size. Readers request no more than they can use, so that a damaged file
causes an error instead of exhausting the memory.
"""

import json
import os
import stat
from pathlib import Path
from typing import Any, Protocol

import numpy as np

SMALL = 48 * 2**20  # Bytes that a compressed file of any size may unpack to.
EXPANSION = 2  # Multiple of its own size that a larger one may unpack to.

_BLOCK = 2**18


class Stream(Protocol):
    """A source of bytes whose `read` returns no bytes at its end."""

    def read(self, size: int, /) -> bytes:
        """Returns at most `size` bytes."""


def check_size(path: str | os.PathLike[str], largest: int) -> int:
    """Checks that a path is a regular file of at most a given size.

    Args:
        path: The file.
        largest: Maximum size in bytes.

    Returns:
        The size in bytes.

    Raises:
        OSError: If the file does not exist, or is a folder.
        ValueError: If it is not a regular file, or is larger than `largest`.
    """
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(
                f"The path must be that of a file. Received: {os.fspath(path)}"
            )
        # Opening a pipe would wait for its other end, and a device may never end.
        raise ValueError(
            f"The path must be that of a regular file. Received: {os.fspath(path)}"
        )
    if status.st_size > largest:
        raise ValueError(
            f"The file must have at most {largest} bytes. Received: {os.fspath(path)} "
            f"of {status.st_size} bytes"
        )
    return status.st_size


def read_bytes(path: str | os.PathLike[str], largest: int) -> bytes:
    """Reads a whole file of at most a given size.

    Args:
        path: The file.
        largest: Maximum size in bytes.

    Returns:
        The contents of the file.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is not a regular file, or is larger than `largest`.
    """
    check_size(path, largest)
    return Path(path).read_bytes()


def read_json(path: str | os.PathLike[str], largest: int) -> Any:
    """Reads a JSON file of at most a given size.

    Args:
        path: The file.
        largest: Maximum size in bytes.

    Returns:
        The value in the file.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is not a regular file, is larger than `largest`, or is not
            valid JSON.
    """
    content = read_bytes(path, largest)
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{os.fspath(path)} must contain JSON. Received: {error}"
        ) from error


def unpacked_limit(size: int) -> int:
    """Returns the maximum number of bytes that a compressed file may unpack to.

    Args:
        size: Size of the compressed file in bytes.

    Returns:
        48 MiB or twice `size`, whichever is larger.

    Example:
    >>> unpacked_limit(100), unpacked_limit(10**8)
    (50331648, 200000000)
    """
    return max(SMALL, EXPANSION * size)


def fill(stream: Stream, size: int) -> tuple[np.ndarray, bool]:
    """Reads the bytes of an array, and checks whether more follow.

    Args:
        stream: The stream to read from.
        size: Number of bytes to read, which the caller has bounded.

    Returns:
        A pair: a uint8 array of shape `[size]`, or shorter if the stream ends before;
        and whether the stream contains more than `size` bytes.
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
