"""Time series of the UCR archive: predict the class."""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_ortho.checks import check
from keras_ortho.files import FilePath, naming
from keras_ortho.tasks.pipeline import Task, check_sizes, constant_error, make_task

# The names of the edition of 2015, which the paper uses, and those of 2018.
NAMES_2018 = {
    "50words": "FiftyWords",
    "Cricket_X": "CricketX",
    "Gun_Point": "GunPoint",
    "Lighting2": "Lightning2",
}


class Series(NamedTuple):
    """The labeled series of a file.

    Attributes:
        labels: float64 `(series,)`.
        values: float32 `(series, length)`.
    """

    labels: np.ndarray
    values: np.ndarray


def step_width(length: int) -> int:
    """Returns the number of values in a step of a series.

    It is the largest divisor of the length that does not exceed its square root, as in
    the paper, except for 50words, which there has 10 values per step.

    Args:
        length: Number of values in the series, a positive integer.

    Example:
    >>> step_width(150)
    10

    Reference:
    - [Zhang et al., 2018](https://proceedings.mlr.press/v80/zhang18g.html), section
      7.1 and table 3 of the ICLR 2018 submission
    """
    check_sizes(length=length)
    width = math.isqrt(length)
    while length % width:
        width -= 1
    return width


def load(
    name: str,
    data_dir: FilePath | None,
    *,
    batch_size: int = 32,
    width: int | None = None,
    swap: bool = False,
    seed: int = 0,
) -> Task:
    r"""Makes the classification task of a data set of the UCR archive.

    A fifth of the training series, whatever their classes, is set aside for validation.

    Args:
        name: Name of the data set in the edition of 2018 or 2015.
        data_dir: Folder, or its parent, of `NAME_TRAIN.tsv` and `NAME_TEST.tsv`.
        batch_size: Series in a batch. Default: 32.
        width: Values in a step. Default: `None`, `step_width(length)`.
        swap: Whether to exchange the two files, in which the editions of three of
            the data sets differ. Default: `False`.
        seed: Seed of the choice of validation series and of the order. Default: 0.

    Returns:
        A `Task` of float32 inputs `(batch, steps, width)` and int32 targets `(batch,)`,
        classes from 0 on in the order of the training file's labels.

    Raises:
        ValueError: If an argument is invalid, or a file is damaged.

    Example:
    >>> for part in ("TRAIN", "TEST"):
    ...     rows = np.column_stack([np.arange(10) % 2, np.random.randn(10, 12)])
    ...     np.savetxt(f"Noise_{part}.tsv", rows, delimiter="\t")
    >>> task = load("Noise", ".")

    Reference:
    - [Zhang et al., 2018](https://proceedings.mlr.press/v80/zhang18g.html), section
      7.1 and appendix C.1 of the ICLR 2018 submission
    - [Dau et al., 2019](https://arxiv.org/abs/1810.07758), the archive
    """
    train, test = _read(name, data_dir)
    if swap:
        train, test = test, train
    count, length = train.values.shape
    width = width or step_width(length)
    labels = np.unique(train.labels)
    other = np.setdiff1d(test.labels, labels).tolist()
    check(not other, "name", f"have labels trained on, {labels.tolist()}", other)
    both = train, test
    x, x_test = (part.values.reshape(len(part.values), -1, width) for part in both)
    y, y_test = (np.searchsorted(labels, part.labels).astype("int32") for part in both)
    split, order = np.random.SeedSequence(seed).spawn(2)
    mixed = np.random.default_rng(split).permutation(count)
    valid, rest = map(np.sort, np.split(mixed, [max(1, round(0.2 * count))]))
    known = constant_error(y[rest], y_test), len(labels)
    parts = (x[rest], y[rest]), (x[valid], y[valid]), (x_test, y_test)
    return make_task(*parts, *known, order=order, batch_size=batch_size)


def read_series(path: FilePath) -> Series:
    r"""Reads a file of the UCR archive, in the format of the edition of 2018.

    Args:
        path: A file with a series per line, label and values separated by tabs.

    Returns:
        The labels and the values.

    Raises:
        ValueError: If the file has no such format, or missing values.

    Example:
    >>> rows = [[1, 0.5, 1.5], [2, 1.0, -1.0]]
    >>> np.savetxt("Two_TRAIN.tsv", rows, delimiter="\t")
    >>> read_series("Two_TRAIN.tsv").values
    array([[ 0.5,  1.5],
           [ 1. , -1. ]], dtype=float32)
    """
    with naming(path):
        table = np.loadtxt(path, delimiter="\t", comments=None, ndmin=2)
        if not np.isfinite(table).all():
            raise ValueError("there are missing values")
    return Series(table[:, 0], table[:, 1:].astype("float32"))


def _read(name: str, data_dir: FilePath | None) -> list[Series]:
    others = [other for pair in NAMES_2018.items() if name in pair for other in pair]
    for stem in (name, *others):
        for folder in (Path(data_dir, stem), Path(data_dir)) if data_dir else ():
            paths = [folder / f"{stem}_{part}.tsv" for part in ("TRAIN", "TEST")]
            if all(path.is_file() for path in paths):
                return [read_series(path) for path in paths]
    raise FileNotFoundError(
        f"`data_dir` must contain {name}_TRAIN.tsv and {name}_TEST.tsv, or a folder "
        f"{name} with them, from the archive at "
        "https://www.cs.ucr.edu/~eamonn/time_series_data_2018/. "
        f"Received: data_dir={data_dir}"
    )
