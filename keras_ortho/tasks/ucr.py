"""Time series of the UCR archive: predict the class."""

import itertools
import math
import os
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_ortho.checks import check_seed
from keras_ortho.reading import naming
from keras_ortho.tasks.pipeline import (
    Task,
    batches,
    check_sizes,
    constant_error,
    shuffled_batches,
)

SOURCE = "https://www.cs.ucr.edu/~eamonn/time_series_data_2018/"
VALIDATION = 0.2

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

    It is the largest divisor of the length that does not exceed its square root. The
    paper states this rule for the number of steps instead, but its numbers of steps and
    parameters follow the rule given here, except those of 50words, which has 10 values
    per step.

    Args:
        length: Number of values in the series.

    Returns:
        The number of values. The series has `length` divided by it steps.

    Raises:
        ValueError: If `length` is not positive.

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
    data_dir: str | os.PathLike[str] | None,
    *,
    batch_size: int = 32,
    width: int | None = None,
    swap: bool = False,
    seed: int = 0,
) -> Task:
    r"""Makes the classification task of a data set of the UCR archive.

    A fifth of the training series, drawn from the seed regardless of their classes, is
    set aside for validation.

    Args:
        name: Name of the data set, such as `"ECG200"`, in the edition of 2018 or
            2015.
        data_dir: Folder of the data set's files `NAME_TRAIN.tsv` and `NAME_TEST.tsv`,
            as in the edition of 2018, or its parent folder.
        batch_size: Series in a batch. The paper does not give it. Default: 32.
        width: Values in a step, a divisor of the length. Default: `None`,
            `step_width(length)`.
        swap: Whether to train on the test file and to test on the training file. These
            files are exchanged between the editions of 2015 and 2018 for
            DistalPhalanxOutlineCorrect, DistalPhalanxTW and
            MiddlePhalanxOutlineCorrect. Default: `False`.
        seed: Seed of the choice of validation series and of the order of the training
            series. Default: 0.

    Returns:
        A `Task`: its data sets yield float32 `(batch, steps, width)` and int32
        `(batch,)`, classes from 0 on in the sorted order of the training file's
        labels. Its `num_classes` is their number; the paper's parameter counts fit an
        output for each number up to the highest label, even if it is not a class.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If an argument is invalid, a file is damaged, or a series has
            missing values or another length.
        ImportError: If TensorFlow is not installed.

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
    check_sizes(batch_size=batch_size, **({} if width is None else {"width": width}))
    check_seed("seed", seed)
    paths = _files(name, data_dir)
    train, test = (read_series(path) for path in (paths[::-1] if swap else paths))
    count, length = train.values.shape
    if test.values.shape[1] != length:
        raise ValueError(
            f"The series of both files must have {length} values. "
            f"Received: {test.values.shape[1]} in one of {paths[0]} and {paths[1].name}"
        )
    width = step_width(length) if width is None else width
    if length % width:
        raise ValueError(
            f"`width` must divide the length of the series, {length}. "
            f"Received: width={width}"
        )
    if count < 2:
        raise ValueError(
            "There must be at least two series, to train and to validate. Received: "
            f"{count} in {paths[1 if swap else 0]}"
        )
    labels = np.unique(train.labels)
    if (other := np.setdiff1d(test.labels, labels)).size:
        raise ValueError(
            f"Each label must be one of those trained on, {labels.tolist()}. "
            f"Received: {other.tolist()} in one of {paths[0]} and {paths[1].name}"
        )
    y, y_test = (
        np.searchsorted(labels, part.labels).astype("int32") for part in (train, test)
    )
    x, x_test = (
        part.values.reshape(-1, length // width, width) for part in (train, test)
    )
    split, order = np.random.SeedSequence(seed).spawn(2)
    mixed = np.random.default_rng(split).permutation(count)
    parts = np.split(mixed, [max(1, round(VALIDATION * count))])
    valid, rest = (np.sort(part) for part in parts)
    in_batches, passes = shuffled_batches(
        x[rest], y[rest], batch_size=batch_size, seed=int(order.generate_state(1)[0])
    )
    return Task(
        in_batches,
        batches(x[valid], y[valid], batch_size=batch_size),
        batches(x_test, y_test, batch_size=batch_size),
        passes,
        constant_error(y[rest], y_test),
        num_classes=len(labels),
    )


def read_series(path: str | os.PathLike[str]) -> Series:
    r"""Reads a file of the UCR archive, in the format of the edition of 2018.

    Args:
        path: A file with one series per line, all of one length: the label and the
            values, separated by tabs.

    Returns:
        The series.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file has no such format, no series, or a value that is
            missing or not finite.

    Example:
    >>> rows = [[1, 0.5, 1.5], [2, 1.0, -1.0]]
    >>> np.savetxt("Two_TRAIN.tsv", rows, delimiter="\t")
    >>> read_series("Two_TRAIN.tsv").values
    array([[ 0.5,  1.5],
           [ 1. , -1. ]], dtype=float32)

    Reference:

    - [Dau et al., 2019](https://arxiv.org/abs/1810.07758), the archive
    """
    with naming(path), warnings.catch_warnings():
        warnings.simplefilter("error")  # NumPy only warns of an empty file.
        table = np.loadtxt(
            path, delimiter="\t", comments=None, ndmin=2, encoding="utf-8"
        )
        values = table[:, 1:].astype("float32")
        if not values.size:
            raise ValueError("each line must have a label and values")
        finite = np.isfinite(table).all(axis=1)
        if not finite.all():
            raise ValueError(f"series {np.argmin(finite) + 1} has missing values")
    return Series(table[:, 0], values)


def _files(name: str, data_dir: str | os.PathLike[str] | None) -> list[Path]:
    others = [other for pair in NAMES_2018.items() if name in pair for other in pair]
    places = [] if data_dir is None else [Path(data_dir)]
    for stem, place in itertools.product((name, *others), places):
        for folder in (place / stem, place):
            paths = [folder / f"{stem}_{part}.tsv" for part in ("TRAIN", "TEST")]
            if all(path.is_file() for path in paths):
                return paths
    raise FileNotFoundError(
        f"`data_dir` must contain {name}_TRAIN.tsv and {name}_TEST.tsv, or a folder "
        f"{name} with them. The archive is available at {SOURCE}. "
        f"Received: data_dir={data_dir and os.fspath(data_dir)}"
    )
