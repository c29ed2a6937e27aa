"""The images of MNIST and CIFAR-10, and their classes."""

import gzip
import math
import os
from pathlib import Path
from typing import Literal, NamedTuple

import keras
import numpy as np

from keras_ortho.checks import check_choice
from keras_ortho.reading import naming

CLASSES = 10

_SHAPES: dict[str, tuple[int, ...]] = {"mnist": (28, 28), "cifar10": (32, 32, 3)}
_ARRAYS = ("x_train", "y_train", "x_test", "y_test")
_IDX_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


class Images(NamedTuple):
    """A data set of images, in the order of its files.

    Attributes:
        train: uint8 `(images, rows, columns)`, or `(images, rows, columns, 3)` in
            red, green and blue.
        train_labels: Classes of `train`, integers from 0 on, `(images,)`.
        test: As `train`.
        test_labels: As `train_labels`.
    """

    train: np.ndarray
    train_labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray


def read_images(
    name: Literal["mnist", "cifar10"], data_dir: str | os.PathLike[str] | None = None
) -> Images:
    """Reads MNIST or CIFAR-10.

    Args:
        name: `"mnist"` or `"cifar10"`.
        data_dir: A file of `numpy.savez` with the arrays `x_train`, `y_train`,
            `x_test` and `y_test`, such as Keras's own `mnist.npz`; or a folder with a
            single such file; or, for MNIST, a folder with its four files
            `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`,
            `t10k-images-idx3-ubyte` and `t10k-labels-idx1-ubyte`, each with or without
            `.gz`. Default: `None`, `keras.datasets`, which downloads the data once
            (11 MB or 170 MB) and keeps them in `~/.keras/datasets`.

    Returns:
        The images.

    Raises:
        FileNotFoundError: If a file is missing, or the data cannot be downloaded.
        ValueError: If `name` is another word, or a file is damaged or has other arrays.

    Example:
    >>> x, y = np.zeros((4, 28, 28), "uint8"), np.arange(4)
    >>> np.savez("mnist.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    >>> read_images("mnist", "mnist.npz").train.shape
    (4, 28, 28)
    """
    check_choice("name", name, _SHAPES)
    if data_dir is None:
        arrays, source = _from_keras(name), f"keras.datasets.{name}"
    else:
        arrays, source = _from_files(name, Path(data_dir)), os.fspath(data_dir)
    # Keras's labels of CIFAR-10 are a column.
    labels = [y[:, 0] if y.shape[1:] == (1,) else y for y in arrays[1::2]]
    images = Images(arrays[0], labels[0], arrays[2], labels[1])
    for part, x, y in (("training", *images[:2]), ("test", *images[2:])):
        fits = x.dtype == np.uint8 and x.shape[1:] == _SHAPES[name] and x.size
        classes = y.dtype.kind in "iu" and np.all((y >= 0) & (y < CLASSES))
        if not fits or not classes or y.shape != x.shape[:1]:
            raise ValueError(
                f"Images must be uint8 of shape {('images', *_SHAPES[name])}, with a "
                f"class in 0..{CLASSES - 1} for each. Received: {x.dtype} of shape "
                f"{x.shape} and {y.dtype} of shape {y.shape}: {part} data of {source}"
            )
    return images


def _from_keras(name: str) -> list[np.ndarray]:
    try:
        train, test = getattr(keras.datasets, name).load_data()
    except Exception as error:  # Keras raises it without a type of its own.
        raise FileNotFoundError(
            f"`data_dir` must be the location of {name} where `keras.datasets` cannot "
            f"download it. Received: data_dir=None, and from Keras: {error}"
        ) from error
    return [*train, *test]


def _from_files(name: str, path: Path) -> list[np.ndarray]:
    options = {file: (path / file, path / f"{file}.gz") for file in _IDX_FILES}
    found = {
        file: next((option for option in both if option.is_file()), None)
        for file, both in options.items()
    }
    if name == "mnist" and any(found.values()):
        if missing := [file for file, place in found.items() if place is None]:
            raise FileNotFoundError(
                "`data_dir` must contain all four files of MNIST. "
                f"Received: {path} without {', '.join(missing)}"
            )
        return [_read_idx(place) for place in found.values() if place]
    archives = sorted(path.glob("*.npz")) if path.is_dir() else [path]
    if len(archives) != 1 or not archives[0].is_file():
        raise FileNotFoundError(
            "`data_dir` must be a .npz file, or a folder with a single one"
            f"{' or with the four files of MNIST' if name == 'mnist' else ''}; if it "
            f"is `None`, `keras.datasets.{name}` downloads the data. "
            f"Received: data_dir={path}"
        )
    with naming(archives[0]), np.load(archives[0], allow_pickle=False) as file:
        return [file[array] for array in _ARRAYS]


def _read_idx(path: Path) -> np.ndarray:
    """Reads bytes: 0, 0, 8, the number of dimensions, big-endian sizes, values."""
    with naming(path):
        content = path.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        if content[:3] != b"\0\0\x08":
            raise ValueError(f"it begins with {content[:4].hex(' ')}, not 00 00 08")
        sizes = np.frombuffer(content, ">u4", count=content[3], offset=4)
        # In Python's integers, which do not wrap around.
        shape = tuple(map(int, sizes))
        values = np.frombuffer(content, np.uint8, offset=4 + 4 * len(shape))
        if values.size != math.prod(shape):
            raise ValueError(f"it holds {values.size} values, not those of {shape}")
        return values.reshape(shape)
