"""Reads series and their labels from the file formats of the UCR archive."""

import math
import os
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from keras_ortho.reading import check_size

SUFFIXES = (".tsv", ".txt", ".ts", "")
LARGEST = 2**30  # bytes of a file
# The archive's longest series has 2 844 values, its largest file 16 800 series.
LONGEST_LINE = 2**20  # characters
MOST_SERIES = 2**17

_MISSING = ("", "?", "nan", "-nan", "+nan")
_LARGEST_FLOAT = float(np.finfo("float32").max)


class Series(NamedTuple):
    """The labeled series of a file.

    Attributes:
        path: The file.
        lines: Line number of each series, from 1 on.
        labels: Label of each series: a number if it is one, else text.
        values: float32 `(series, length)`.
    """

    path: Path
    lines: list[int]
    labels: list[float | str]
    values: np.ndarray


def read_series(path: str | os.PathLike[str]) -> Series:
    """Reads a file of the UCR archive.

    Args:
        path: A file with one series per line, all of one length: the label and the
            values, separated by tabs, commas or spaces, as in the editions of 2015 and
            2018. If the name ends in `.ts`, the format is that of sktime and aeon:
            after `@data`, the values separated by commas, a colon, and the label.

    Returns:
        The series.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If a line has no label, a value that is missing or not a finite
            number, another number of values, more than one channel, or more than
            2^20 characters; or if there are no series, or more than 131 072. The
            message names the file and the line.

    Example:
    >>> np.savetxt("Two_TRAIN.txt", [[1, 0.5, 1.5], [2, 1.0, -1.0]], delimiter=",")
    >>> read_series("Two_TRAIN.txt").values
    array([[ 0.5,  1.5],
           [ 1. , -1. ]], dtype=float32)

    Reference:

    - [Dau et al., 2019](https://arxiv.org/abs/1810.07758), the archive
    """
    path = Path(path)
    numbers: list[int] = []
    labels: list[float | str] = []
    values = array("f")
    length = 0
    for number, label, fields in _lines(path):
        where = f"{path}, line {number}"
        if label.lower() in _MISSING:
            raise ValueError(
                f"A series must have a label. Received: {where}: {label[:40]!r}"
            )
        row = _values(fields, where)
        length = length or len(row)
        if len(row) != length:
            raise ValueError(
                f"All series must have {length} values, as that of line {numbers[0]}. "
                f"Received: {where}: {len(row)} values"
            )
        if len(labels) == MOST_SERIES:
            raise ValueError(
                f"The file must contain at most {MOST_SERIES} series. Received: {where}"
            )
        numbers.append(number)
        labels.append(_label(label))
        values.extend(row)
    if not labels:
        raise ValueError(f"The file must contain series. Received: {path}: none")
    table = np.frombuffer(values, "float32").reshape(len(labels), length)
    return Series(path, numbers, labels, table)


def _lines(path: Path) -> Iterator[tuple[int, str, list[str]]]:
    """Yields the number, the label and the values of each line that has a series."""
    check_size(path, LARGEST)
    # Comments in .ts files may have any encoding; the data are UTF-8.
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        numbered = enumerate(_bounded_lines(file, path), 1)
        lines = ((number, line) for number, line in numbered if line.strip())
        if path.suffix == ".ts":
            yield from _sktime_lines(path, lines)
            return
        for number, line in lines:
            separator = next((mark for mark in ",\t" if mark in line), None)
            label, *fields = line.split(separator)
            yield number, label.strip(), fields


def _bounded_lines(file: TextIO, path: Path) -> Iterator[str]:
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise ValueError(
                f"A line must have at most {LONGEST_LINE} characters. "
                f"Received: {path}, line {number}"
            )
        yield line.strip("\n")


def _sktime_lines(
    path: Path, lines: Iterator[tuple[int, str]]
) -> Iterator[tuple[int, str, list[str]]]:
    header = True
    for number, line in lines:
        line = line.strip()
        if line.startswith("#"):
            continue
        if header:
            if not line.startswith("@"):
                raise ValueError(
                    "A line before @data must start with # or @. "
                    f"Received: {path}, line {number}: {line[:40]!r}"
                )
            header = line.split()[0].lower() != "@data"
            continue
        channels = line.split(":")
        if len(channels) != 2:
            raise ValueError(
                "A series must be one channel, a colon and a label. "
                f"Received: {path}, line {number}: {len(channels) - 1} colons"
            )
        yield number, channels[1].strip(), channels[0].split(",")


def _values(fields: list[str], where: str) -> list[float]:
    values = []
    for place, field in enumerate(fields, 1):
        if field.strip().lower() in _MISSING:
            raise ValueError(
                "A series must have no missing value. "
                f"Received: {where}: {field[:40]!r} as value {place}"
            )
        values.append(_number(field, math.nan))
        if not abs(values[-1]) <= _LARGEST_FLOAT:
            raise ValueError(
                "A value must be a finite number. "
                f"Received: {where}: {field[:40]!r} as value {place}"
            )
    if not values:
        raise ValueError(f"A series must have values. Received: {where}: none")
    return values


def _label(text: str) -> float | str:
    """Returns a label as a number if it is one: 1 and 1.0000e+00 are the same."""
    return _number(text, text)


def _number(text: str, otherwise: Any) -> Any:
    """Reads a number as the archive writes it, without Python's underscores."""
    try:
        return otherwise if "_" in text else float(text)
    except ValueError:
        return otherwise
