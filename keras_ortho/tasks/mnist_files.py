"""Reads MNIST's four files, in the idx format."""

import gzip
import math
import os
import zlib
from pathlib import Path

import numpy as np

from keras_ortho.reading import Stream, check_size, fill, unpacked_limit
from keras_ortho.tasks.images import Images, check_images

FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
SOURCE = "https://ossci-datasets.s3.amazonaws.com/mnist/"
CLASSES = 10
SHAPE = (28, 28)
LARGEST = 2**30  # bytes of a file, gzipped or not

_UNSIGNED_BYTES = 8


def read_idx(path: str | os.PathLike[str], ndim: int) -> np.ndarray:
    """Reads an array of unsigned bytes in the idx format.

    The file starts with two zeros, the type (8: unsigned bytes) and the number of
    dimensions, one byte each, and the dimensions as big-endian 32-bit integers.

    Args:
        path: The file, gzipped or not.
        ndim: Number of dimensions that it must have: 3 for images, 1 for labels.

    Returns:
        A uint8 array.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is not such an array, or is too short or too long. A gzipped
            file may unpack to at most 48 MiB, or twice its size if that is more.

    Example:
    >>> with open("labels-idx1-ubyte", "wb") as file:
    ...     size = file.write(bytes([0, 0, 8, 1, 0, 0, 0, 2, 5, 0]))
    >>> read_idx("labels-idx1-ubyte", 1)
    array([5, 0], dtype=uint8)

    Reference:

    - LeCun, Cortes, Burges, "The MNIST database of handwritten digits": file
      formats
    """
    size = check_size(path, LARGEST)
    with open(path, "rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if not zipped:
            return _read_array(file, ndim, size, path)
        try:
            with gzip.GzipFile(fileobj=file) as unzipped:
                return _read_array(unzipped, ndim, unpacked_limit(size), path)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(
                f"The gzip file is truncated or damaged. Received: {path}: {error}"
            ) from error


def _read_array(
    stream: Stream, ndim: int, limit: int, path: str | os.PathLike[str]
) -> np.ndarray:
    """Reads the header, and no more values than it announces and `limit` allows."""
    magic = bytes([0, 0, _UNSIGNED_BYTES, ndim])
    start = len(magic) + 4 * ndim
    header = stream.read(start)
    if header[:4] != magic or len(header) < start:
        raise ValueError(
            f"An idx file of {ndim} dimensions must start with {magic.hex(' ')} and "
            f"{ndim} sizes. Received: {header[:4].hex(' ')} in {path}, of "
            f"{'' if len(header) < start else 'at least '}{len(header)} bytes"
        )
    shape = tuple(int(size) for size in np.frombuffer(header, ">u4", ndim, 4))
    expected = math.prod(shape)
    values, more = fill(stream, min(expected, limit))
    if more or len(values) != expected:
        raise ValueError(
            f"An idx file of shape {shape} must hold {expected} values. "
            f"Received: {'more than ' if more else ''}{len(values)} in {path}"
        )
    return values.reshape(shape)


def read_mnist(folder: str | os.PathLike[str]) -> Images:
    """Reads MNIST from its four files.

    Args:
        folder: Folder of `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`,
            `t10k-images-idx3-ubyte` and `t10k-labels-idx1-ubyte`, each uncompressed
            or gzipped as `.gz`.

    Returns:
        The images, uint8 `(images, 28, 28)`.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If a file is damaged, or is not one of MNIST's.

    Example:
    ```python
    images = read_mnist("mnist")
    ```
    """
    arrays = []
    for name in FILES:
        options = [Path(folder, name + suffix) for suffix in ("", ".gz")]
        path = next((option for option in options if option.is_file()), None)
        if path is None:
            raise FileNotFoundError(
                f"`data_dir` must contain {name} or {name}.gz, available at {SOURCE}. "
                f"Received: data_dir={os.fspath(folder)}"
            )
        arrays.append(read_idx(path, ndim=3 if "images" in name else 1))
        if "labels" in name:
            check_images(arrays[-2], arrays[-1], SHAPE, CLASSES, path)
    return Images(*arrays)
