"""The images of MNIST and CIFAR-10, and their classes."""

import gzip
import itertools
from pathlib import Path
from typing import Literal, NamedTuple

import keras
import numpy as np

from keras_ortho.checks import check, check_choice
from keras_ortho.files import FilePath, naming

_SHAPES: dict[str, tuple[int, ...]] = {"mnist": (28, 28), "cifar10": (32, 32, 3)}
_HEADERS = {"images-idx3": 16, "labels-idx1": 8}  # Of MNIST's files, in bytes.


class Images(NamedTuple):
    """A data set of images, in the order of its files.

    Attributes:
        train, test: uint8 `(images, rows, columns)`, or `(images, rows, columns, 3)`.
        train_labels, test_labels: Classes, integers from 0 on, `(images,)`.
    """

    train: np.ndarray
    train_labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray


def read_images(
    name: Literal["mnist", "cifar10"], data_dir: FilePath | None = None
) -> Images:
    """Reads MNIST or CIFAR-10.

    Args:
        name: `"mnist"` or `"cifar10"`.
        data_dir: A file of `numpy.savez` with the arrays `x_train`, `y_train`,
            `x_test` and `y_test`, such as Keras's own `mnist.npz`, or a folder with a
            single one, or with MNIST's four files, each with or without `.gz`. Default:
            `None`, `keras.datasets`, which downloads the data once (11 MB or 170 MB).

    Returns:
        The images, and classes from 0 to 9.

    Raises:
        FileNotFoundError: If a file is missing, or the data cannot be downloaded.
        ValueError: If a file is damaged or has other arrays.

    Example:
    >>> x, y = np.zeros((4, 28, 28), "uint8"), np.arange(4)
    >>> np.savez("mnist.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    >>> read_images("mnist", "mnist.npz").train.shape
    (4, 28, 28)
    """
    check_choice("name", name, _SHAPES)
    arrays = _downloaded(name) if data_dir is None else _stored(name, Path(data_dir))
    # Keras's labels of CIFAR-10 are a column.
    arrays[1::2] = (labels.reshape(-1) for labels in arrays[1::2])
    images = Images(*arrays)
    for x, y in (images[:2], images[2:]):
        fits = x.dtype == np.uint8 and x.shape == (len(y), *_SHAPES[name])
        wanted = f"hold uint8 of shape {('images', *_SHAPES[name])}, with a class each"
        received = f"{x.dtype} of shape {x.shape}, {len(y)} classes in {data_dir}"
        check(fits, "data_dir", wanted, received)
    return images


def _downloaded(name: str) -> list[np.ndarray]:
    try:
        train, test = getattr(keras.datasets, name).load_data()
    except Exception as error:  # Keras raises it without a type of its own.
        raise FileNotFoundError(
            f"`data_dir` must be the location of {name}, which Keras cannot download. "
            f"Received: data_dir=None, and from Keras: {error}"
        ) from error
    return [*train, *test]


def _stored(name: str, path: Path) -> list[np.ndarray]:
    if name == "mnist" and any(path.glob("train-images-idx3-ubyte*")):
        names = itertools.product(("train", "t10k"), _HEADERS)
        return [_read_idx(path / f"{a}-{b}-ubyte", _HEADERS[b]) for a, b in names]
    archives = sorted(path.glob("*.npz")) if path.is_dir() else [path]
    if len(archives) != 1:
        raise FileNotFoundError(
            "`data_dir` must be a .npz file, or a folder with a single one or, for "
            f"MNIST, with its four files. Received: data_dir={path}"
        )
    with naming(archives[0]), np.load(archives[0], allow_pickle=False) as file:
        return [file[array] for array in ("x_train", "y_train", "x_test", "y_test")]


def _read_idx(path: Path, start: int) -> np.ndarray:
    packed = path.with_name(f"{path.name}.gz")
    opener, path = (gzip.open, packed) if packed.is_file() else (open, path)
    with naming(path), opener(path, "rb") as file:
        data = np.frombuffer(file.read(), np.uint8, offset=start)
        return data.reshape(-1, 28, 28) if start == 16 else data
