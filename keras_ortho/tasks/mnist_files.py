"""MNIST's four files, in the idx format."""

import gzip
import os
import zlib
from pathlib import Path

import numpy as np

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

_UNSIGNED_BYTES = 8


def read_idx(path: str | os.PathLike[str], ndim: int) -> np.ndarray:
    """Reads an array of unsigned bytes in the idx format.

    The file starts with two zeros, the type (8: unsigned bytes) and the number of
    dimensions, a byte each, and the dimensions, big-endian 32-bit integers.

    Args:
        path: The file, gzipped or not.
        ndim: Number of dimensions that it must have: 3 for images, 1 for labels.

    Returns:
        A uint8 array.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is not such an array, or is cut short.

    Example:
    >>> with open("labels-idx1-ubyte", "wb") as file:
    ...     size = file.write(bytes([0, 0, 8, 1, 0, 0, 0, 2, 5, 0]))
    >>> read_idx("labels-idx1-ubyte", 1)
    array([5, 0], dtype=uint8)

    Reference:

    - LeCun, Cortes, Burges, "The MNIST database of handwritten digits": file
      formats
    """
    content = _uncompressed(Path(path))
    magic = bytes([0, 0, _UNSIGNED_BYTES, ndim])
    start = len(magic) + 4 * ndim
    if content[:4] != magic or len(content) < start:
        raise ValueError(
            f"An idx file of {ndim} dimensions must start with {magic.hex(' ')} and "
            f"{ndim} sizes. Received: {content[:4].hex(' ')} in {path}, of "
            f"{len(content)} bytes"
        )
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", ndim, 4))
    values = np.frombuffer(content, np.uint8, offset=start)
    expected = int(np.prod(shape, dtype=object))
    if len(values) != expected:
        raise ValueError(
            f"An idx file of shape {shape} must hold {expected} values. "
            f"Received: {len(values)} in {path}"
        )
    return values.reshape(shape)


def _uncompressed(path: Path) -> bytes:
    content = path.read_bytes()
    if content[:2] != b"\x1f\x8b":
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(
            f"A gzipped file must be whole. Received: {path}: {error}"
        ) from error


def read_mnist(folder: str | os.PathLike[str]) -> Images:
    """Reads MNIST from its four files.

    Args:
        folder: Folder of `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`,
            `t10k-images-idx3-ubyte` and `t10k-labels-idx1-ubyte`, each as it is or
            gzipped as `.gz`.

    Returns:
        The images, uint8 `(images, 28, 28)`.

    Raises:
        FileNotFoundError: If one is missing.
        ValueError: If one is damaged, or is not MNIST's.

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
                f"`data_dir` must hold {name} or {name}.gz, which are at {SOURCE}. "
                f"Received: data_dir={os.fspath(folder)}"
            )
        arrays.append(read_idx(path, ndim=3 if "images" in name else 1))
        if "labels" in name:
            check_images(arrays[-2], arrays[-1], SHAPE, CLASSES, path)
    return Images(*arrays)
