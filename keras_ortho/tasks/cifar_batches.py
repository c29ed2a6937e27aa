"""Reads CIFAR-10's batches in its authors' two formats, pickled and binary."""

import os
from typing import Any

import numpy as np

from keras_ortho.reading import read_bytes
from keras_ortho.tasks.images import check_images
from keras_ortho.tasks.plain_pickle import read_plain_pickle

CLASSES = 10
SHAPE = (32, 32, 3)
LARGEST = 2**28  # bytes of a file: all 60 000 images take 184 MB

_VALUES = 3 * 32 * 32


def read_pickled(path: str | os.PathLike[str]) -> tuple[np.ndarray, np.ndarray]:
    """Reads a file of `cifar-10-batches-py`.

    The file is a pickled dictionary. It is not unpickled: the bytes of the images and
    the list of labels are read from its instructions, and nothing in it is called.

    Args:
        path: The file.

    Returns:
        The images, uint8 `(images, 32, 32, 3)`, and their labels.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is not such a file.

    Example:
    ```python
    images, labels = read_pickled("cifar-10-batches-py/test_batch")
    ```
    """
    data = read_bytes(path, LARGEST)
    try:
        content = read_plain_pickle(data)
    except ValueError as error:
        raise ValueError(
            "A batch must be a pickle of byte arrays and plain values. "
            f"Received: {os.fspath(path)}: {error}"
        ) from error
    if not isinstance(content, dict):
        raise ValueError(
            f"A batch must be a dictionary. Received: {type(content)} in {path}"
        )
    # The keys are Python 2's texts, or bytes if these were read and saved as bytes.
    values = {_text(key): value for key, value in content.items()}
    if not {"data", "labels"} <= values.keys():
        raise ValueError(
            "A batch must contain 'data' and 'labels'. Received: "
            f"{sorted(map(str, values))} in {path}"
        )
    labels = values["labels"]
    if not isinstance(labels, list) or {type(label) for label in labels} - {int}:
        raise ValueError(
            f"Labels must be a list of integers. Received: {os.fspath(path)}"
        )
    return _unpacked(values["data"], np.array(labels), path)


def read_binary(path: str | os.PathLike[str]) -> tuple[np.ndarray, np.ndarray]:
    """Reads a file of `cifar-10-batches-bin`.

    A record consists of a label and 3 072 values, one byte each.

    Args:
        path: The file.

    Returns:
        As for `read_pickled`.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it does not consist of whole records of 10 classes.

    Example:
    >>> np.array([7] + 3072 * [0], "uint8").tofile("batch.bin")
    >>> images, labels = read_binary("batch.bin")
    """
    content = np.frombuffer(read_bytes(path, LARGEST), np.uint8)
    if content.size % (1 + _VALUES):
        raise ValueError(
            f"A batch must consist of records of {1 + _VALUES} bytes. "
            f"Received: {content.size} bytes in {os.fspath(path)}"
        )
    records = content.reshape(-1, 1 + _VALUES)
    return _unpacked(records[:, 1:], records[:, 0], path)


def _text(key: Any) -> Any:
    return key.decode("latin1") if isinstance(key, bytes) else key


def _unpacked(
    data: Any, labels: np.ndarray, path: str | os.PathLike[str]
) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(data, np.ndarray) or data.shape[1:] != (_VALUES,):
        found = f"shape {data.shape}" if isinstance(data, np.ndarray) else type(data)
        raise ValueError(
            f"Images must be rows of {_VALUES} values. "
            f"Received: {found} in {os.fspath(path)}"
        )
    # An image has all its red values first, then all green, then all blue ones.
    images = data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    check_images(images, labels, SHAPE, CLASSES, path)
    return images, labels
