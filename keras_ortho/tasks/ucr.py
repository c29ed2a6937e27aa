"""Time series of the UCR archive: predict the class."""

import itertools
import math
import os
from pathlib import Path

import numpy as np

from keras_ortho.checks import check_seed
from keras_ortho.tasks.pipeline import (
    Task,
    batches,
    check_sizes,
    constant_error,
    shuffled_batches,
)
from keras_ortho.tasks.ucr_files import SUFFIXES, Series, read_series

SOURCE = "https://www.cs.ucr.edu/~eamonn/time_series_data_2018/"
VALIDATION = 0.2

# The names of the edition of 2015, which the paper uses, and those of 2018.
NAMES_2018 = {
    "50words": "FiftyWords",
    "Cricket_X": "CricketX",
    "Gun_Point": "GunPoint",
    "Lighting2": "Lightning2",
}


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
    """Makes the classification task of a data set of the UCR archive.

    A fifth of the training series, drawn from the seed regardless of their classes, is
    set aside for validation.

    Args:
        name: Name of the data set, such as `"ECG200"`, in the edition of 2018 or
            2015.
        data_dir: Folder of the data set's files `NAME_TRAIN` and `NAME_TEST`, which
            end in `.tsv`, `.txt`, `.ts` or nothing, or its parent folder.
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
        ValueError: If an argument is invalid, or a file is damaged; the message then
            names the line.
        ImportError: If TensorFlow is not installed.

    Example:
    >>> for part in ("TRAIN", "TEST"):
    ...     rows = np.column_stack([np.arange(10) % 2, np.random.randn(10, 12)])
    ...     np.savetxt(f"Noise_{part}.txt", rows, delimiter=",")
    >>> task = load("Noise", ".")

    Reference:

    - [Zhang et al., 2018](https://proceedings.mlr.press/v80/zhang18g.html), section
      7.1 and appendix C.1 of the ICLR 2018 submission
    - [Dau et al., 2019](https://arxiv.org/abs/1810.07758), the archive
    """
    check_sizes(batch_size=batch_size, **({} if width is None else {"width": width}))
    check_seed("seed", seed)
    if not isinstance(name, str) or not name:
        raise ValueError(
            f"`name` must be the name of a data set. Received: name={name!r}"
        )
    train, test = (read_series(path) for path in _files(name, data_dir))
    if swap:
        train, test = test, train
    length = train.values.shape[1]
    if test.values.shape[1] != length:
        raise ValueError(
            f"The series of {test.path} must have {length} values, as those of "
            f"{train.path}. Received: {test.values.shape[1]}"
        )
    width = step_width(length) if width is None else width
    if length % width:
        raise ValueError(
            f"`width` must divide the length of the series, {length}. "
            f"Received: width={width}"
        )
    count = len(train.lines)
    if count < 2:
        raise ValueError(
            "There must be at least two series, to train and to validate. Received: "
            f"{count} in {train.path}"
        )
    labels = sorted(
        set(train.labels), key=lambda label: (isinstance(label, str), label)
    )
    x, y = train.values.reshape(count, -1, width), _classes(train, labels)
    split, order = np.random.SeedSequence(seed).spawn(2)
    mixed = np.random.default_rng(split).permutation(count)
    parts = np.split(mixed, [max(1, round(VALIDATION * count))])
    valid, rest = (np.sort(part) for part in parts)
    in_batches, passes = shuffled_batches(
        x[rest], y[rest], batch_size=batch_size, seed=int(order.generate_state(1)[0])
    )
    x_test = test.values.reshape(len(test.lines), -1, width)
    y_test = _classes(test, labels)
    return Task(
        in_batches,
        batches(x[valid], y[valid], batch_size=batch_size),
        batches(x_test, y_test, batch_size=batch_size),
        passes,
        constant_error(y[rest], y_test),
        num_classes=len(labels),
    )


def _files(name: str, data_dir: str | os.PathLike[str] | None) -> tuple[Path, Path]:
    others = [
        other
        for pair in NAMES_2018.items()
        for other in pair
        if name in pair and name != other
    ]
    folders = [] if data_dir is None else [Path(data_dir)]
    for folder in folders:
        for stem in (name, *others):
            for place, suffix in itertools.product((folder / stem, folder), SUFFIXES):
                train, test = (
                    place / f"{stem}_{part}{suffix}" for part in ("TRAIN", "TEST")
                )
                if train.is_file() and test.is_file():
                    return train, test
    raise FileNotFoundError(
        f"`data_dir` must contain {name}_TRAIN and {name}_TEST, both as .tsv, .txt, "
        f".ts or without a suffix, or a folder {name} with them. The archive is "
        f"available at {SOURCE}. Received: data_dir={data_dir and os.fspath(data_dir)}"
    )


def _classes(series: Series, labels: list[float | str]) -> np.ndarray:
    numbers = {label: number for number, label in enumerate(labels)}
    for line, label in zip(series.lines, series.labels, strict=True):
        if label not in numbers:
            raise ValueError(
                f"Each label must be one of those in the training file, {labels}. "
                f"Received: {series.path}, line {line}: {label!r}"
            )
    return np.array([numbers[label] for label in series.labels], "int32")
