"""CIFAR-10's batches, as its authors give them: pickled, and binary."""

import os
import pickle
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from keras_ortho.tasks.images import check_images

CLASSES = 10
SHAPE = (32, 32, 3)

_VALUES = 3 * 32 * 32


class _ArrayUnpickler(pickle.Unpickler):
    """Reads pickles of plain values and arrays: others could run any code."""

    # What a pickled array names, in modules that differ from one NumPy to the next.
    ALLOWED: ClassVar[dict[str, Any]] = {
        "ndarray": np.ndarray,
        "dtype": np.dtype,
        "_reconstruct": np.zeros(0).__reduce__()[0],
    }

    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] == "numpy" and name in self.ALLOWED:
            return self.ALLOWED[name]
        raise pickle.UnpicklingError(f"{module}.{name} is not allowed")


def read_pickled(path: str | os.PathLike[str]) -> tuple[np.ndarray, np.ndarray]:
    """Reads a file of `cifar-10-batches-py`.

    It is a pickled dictionary; only plain values and arrays are unpickled.

    Args:
        path: The file.

    Returns:
        The images, uint8 `(images, 32, 32, 3)`, and their labels.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is not such a file.

    Example:
    ```python
    images, labels = read_pickled("cifar-10-batches-py/test_batch")
    ```
    """
    with open(path, "rb") as file:
        try:
            content = _ArrayUnpickler(file, encoding="bytes").load()
        except Exception as error:  # A damaged pickle may raise any.
            raise ValueError(
                "A batch must be a pickle of arrays and plain values. "
                f"Received: {os.fspath(path)}: {error}"
            ) from error
    if not isinstance(content, dict):
        raise ValueError(
            f"A batch must be a dictionary. Received: {type(content)} in {path}"
        )
    values = {_text(key): value for key, value in content.items()}
    if not {"data", "labels"} <= values.keys():
        raise ValueError(
            "A batch must have 'data' and 'labels'. "
            f"Received: {sorted(map(str, values))} in {path}"
        )
    return _unpacked(values["data"], values["labels"], path)


def read_binary(path: str | os.PathLike[str]) -> tuple[np.ndarray, np.ndarray]:
    """Reads a file of `cifar-10-batches-bin`.

    A record is a label and 3 072 values, a byte each.

    Args:
        path: The file.

    Returns:
        The images, uint8 `(images, 32, 32, 3)`, and their labels.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it does not consist of whole records of 10 classes.

    Example:
    >>> size = Path("batch.bin").write_bytes(bytes([7] + 3072 * [0]))
    >>> images, labels = read_binary("batch.bin")
    """
    content = np.frombuffer(Path(path).read_bytes(), np.uint8)
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
    data: Any, labels: Any, path: str | os.PathLike[str]
) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(data, np.ndarray) or data.shape[1:] != (_VALUES,):
        raise ValueError(
            f"Images must be rows of {_VALUES} values. "
            f"Received: shape {np.shape(data)} in {os.fspath(path)}"
        )
    # All red values of an image come first, then all green ones, all blue ones.
    images = data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    try:
        labels = np.asarray(labels)
    except ValueError as error:
        raise ValueError(
            f"Labels must be a list of integers. Received: {os.fspath(path)}: {error}"
        ) from error
    check_images(images, labels, SHAPE, CLASSES, path)
    return images, labels
