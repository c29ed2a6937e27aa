"""Arrays of images and their classes, as returned by the readers of data sets."""

import os
from typing import Any, NamedTuple

import numpy as np

from keras_ortho.extras import require


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


def check_images(
    images: np.ndarray,
    labels: np.ndarray,
    shape: tuple[int, ...],
    classes: int,
    source: str | os.PathLike[str],
) -> None:
    """Checks the images and labels of a data set.

    Args:
        images: Should be uint8 `(images, *shape)`.
        labels: Should be integers from 0 to `classes - 1`, `(images,)`.
        shape: Shape of one image.
        classes: Number of classes.
        source: File that they come from, for the error message.

    Raises:
        ValueError: If a dtype, a shape or a label is wrong, or there are no images.

    Example:
    >>> check_images(np.zeros((5, 8, 8), "uint8"), np.arange(5), (8, 8), 5, "a.npz")
    """
    source = os.fspath(source)
    if images.dtype != np.uint8 or images.shape[1:] != shape or not images.size:
        raise ValueError(
            f"Images must be uint8 of shape {('images', *shape)}. "
            f"Received: {images.dtype} of shape {images.shape} in {source}"
        )
    if labels.dtype.kind not in "iu" or labels.shape != images.shape[:1]:
        raise ValueError(
            f"Labels must be integers, one for each of the {len(images)} images. "
            f"Received: {labels.dtype} of shape {labels.shape} in {source}"
        )
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if wrong.size:
        raise ValueError(
            f"Labels must be in 0..{classes - 1}. "
            f"Received: {labels[wrong[0]]} for image {wrong[0]} in {source}"
        )


def prepared(name: str) -> Images:
    """Reads images that `tensorflow-datasets` has prepared on this machine.

    Nothing is downloaded. If the data set has an `"id"`, the images are sorted by it:
    for CIFAR-10, this is the order of the original files. MNIST has none, and keeps
    the order of `tensorflow-datasets`.

    Args:
        name: Name of the data set: `"mnist"` or `"cifar10"`.

    Returns:
        The images.

    Raises:
        FileNotFoundError: If the data set is not prepared in the folder that
            `TFDS_DATA_DIR` names, or in `~/tensorflow_datasets`.
        ImportError: If `tensorflow-datasets` is not installed.

    Example:
    ```python
    images = prepared("mnist")
    ```
    """
    tfds = require("tensorflow_datasets", extra="data")
    # `tfds.builder` asks a server about data sets that it does not find.
    files = require("tensorflow_datasets.core.read_only_builder", extra="data")
    try:
        builder = files.builder_from_files(name)
    except tfds.core.DatasetNotFoundError as error:
        raise FileNotFoundError(
            f"tensorflow-datasets has not prepared {name!r}: "
            f"`tfds.builder({name!r}).download_and_prepare()` does"
        ) from error

    def read(split: str) -> tuple[np.ndarray, np.ndarray]:
        found: Any = tfds.as_numpy(builder.as_dataset(split=split, batch_size=-1))
        order = np.argsort(found["id"]) if "id" in found else slice(None)
        images, labels = found["image"][order], found["label"][order]
        return (images[..., 0] if images.shape[-1] == 1 else images), labels

    return Images(*read("train"), *read("test"))
