"""Reads CIFAR-10 from its authors' files, or from a file of `numpy.savez`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from keras_ortho.reading import read_bytes
from keras_ortho.tasks.cifar_batches import (
    CLASSES,
    LARGEST,
    SHAPE,
    read_binary,
    read_pickled,
)
from keras_ortho.tasks.images import Images, check_images
from keras_ortho.tasks.npz_arrays import read_arrays

SOURCE = "https://www.cs.toronto.edu/~kriz/cifar.html"

_PARTS = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
_ARRAYS = ("x_train", "y_train", "x_test", "y_test")


def read_npz(path: str | os.PathLike[str]) -> Images:
    """Reads images from a file of `numpy.savez`.

    Args:
        path: A file with the arrays `x_train` and `x_test`, uint8
            `(images, 32, 32, 3)`, and `y_train` and `y_test`, integers
            `(images,)` or `(images, 1)`.

    Returns:
        The images.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is not such a file. A compressed file may unpack to at most
            48 MiB, or twice its size if that is more.

    Example:
    >>> x, y = np.zeros((4, 32, 32, 3), "uint8"), np.arange(4)
    >>> np.savez("cifar10.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    >>> images = read_npz("cifar10.npz")
    """
    data = read_bytes(path, LARGEST)
    try:
        arrays = read_arrays(data, _ARRAYS)
    except ValueError as error:
        raise ValueError(
            f"A file of images must be .npz and contain {', '.join(_ARRAYS)}. "
            f"Received: {os.fspath(path)}: {error}"
        ) from error
    for part in ("train", "test"):
        images, labels = arrays[f"x_{part}"], arrays[f"y_{part}"]
        if labels.shape == (len(images), 1):
            labels = arrays[f"y_{part}"] = labels[:, 0]
        check_images(images, labels, SHAPE, CLASSES, path)
    return Images(*(arrays[name] for name in _ARRAYS))


def read_cifar10(data_dir: str | os.PathLike[str]) -> Images:
    """Reads CIFAR-10 from its files.

    Args:
        data_dir: The folder `cifar-10-batches-py` or `cifar-10-batches-bin`, or its
            parent folder; or a file for `read_npz`, or a folder with a single one.

    Returns:
        The images.

    Raises:
        FileNotFoundError: If there are no such files, or one of them is missing.
        ValueError: If a file is damaged or has another format.

    Example:
    >>> x, y = np.zeros((4, 32, 32, 3), "uint8"), np.arange(4)
    >>> np.savez("cifar10.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    >>> images = read_cifar10(".")
    """
    folder = Path(data_dir)
    if folder.is_file():
        return read_npz(folder)
    layouts: tuple[tuple[str, str, Callable[..., Any]], ...] = (
        ("cifar-10-batches-py", "", read_pickled),
        ("cifar-10-batches-bin", ".bin", read_binary),
    )
    for name, suffix, read in layouts:
        for place in (folder, folder / name):
            paths = [place / (part + suffix) for part in _PARTS]
            missing = [path.name for path in paths if not path.is_file()]
            if not missing:
                return _joined(list(map(read, paths)))
            if len(missing) < len(paths):
                raise FileNotFoundError(
                    "`data_dir` must contain all files of CIFAR-10, available at "
                    f"{SOURCE}. Received: {place} without {', '.join(missing)}"
                )
    archives = sorted(folder.glob("*.npz"))
    if len(archives) == 1:
        return read_npz(archives[0])
    raise FileNotFoundError(
        "`data_dir` must contain cifar-10-batches-py or cifar-10-batches-bin, "
        f"available at {SOURCE}, or one .npz file. Received: "
        f"data_dir={os.fspath(data_dir)} with {len(archives)} .npz files"
    )


def _joined(batches: list[tuple[np.ndarray, np.ndarray]]) -> Images:
    *train, test = batches
    images, labels = (np.concatenate(parts) for parts in zip(*train, strict=True))
    return Images(images, labels, *test)
