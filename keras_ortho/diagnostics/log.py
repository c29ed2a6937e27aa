"""A callback that logs what a function measures in training."""

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_ortho.checks import check, check_count
from keras_ortho.files import FilePath, write_csv


class Log(keras.callbacks.Callback):
    """Writes what a function measures of the model to a CSV file during training.

    The table has a row for the start and every `every`-th epoch, with the number of
    completed `epoch`s and all that was measured: columns are named by the keys of a
    dictionary, the indices of an array from 1 on, as in `2/5`, `real` and `imag`, or
    `value` for a single number. A resumed run (`initial_epoch`) keeps earlier rows.

    Args:
        path: CSV file to write. Missing folders are created.
        measure: Function of the model that returns a number, an array, a named tuple,
            or a dictionary of these, such as `manifold_distances`.
        every: Number of epochs between measurements, a positive integer. Default: 1.

    Attributes:
        history: Dictionary of the columns, lists of equal length, one of them `epoch`.

    Raises:
        ValueError: If `every` is not positive, or a resumed file has other columns.

    Example:
    >>> from keras_ortho.diagnostics import gradient_norms
    >>> model.compile("sgd", "mse")
    >>> x, y = np.ones((8, 3, 2)), np.ones((8, 4))
    >>> norms = Log("norms.csv", lambda model: gradient_norms(model, x, y))
    >>> history = model.fit(x, y, callbacks=[norms], verbose=0)
    >>> norms.history["epoch"]
    [0, 1]
    """

    def __init__(
        self, path: FilePath, measure: Callable[[Any], Any], *, every: int = 1
    ) -> None:
        super().__init__()
        self.path = Path(path)
        self.measure = measure
        self.every: int = check_count("every", every)
        self._rows: list[dict[str, float]] = []

    @property
    def history(self) -> dict[str, list[float]]:
        """The table by column."""
        columns = self._rows[0] if self._rows else ()
        return {name: [row[name] for row in self._rows] for name in columns}

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Discards the rows of an earlier run, whose model may have been another."""
        self._rows = []

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Measures before the first epoch of a run, after `epoch` completed epochs."""
        if not self._rows:
            self._rows = self._earlier(epoch)
            if not self._rows or epoch % self.every == 0:
                self._record(epoch)

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Measures after an epoch, when `epoch + 1` epochs are completed."""
        if (epoch + 1) % self.every == 0:
            self._record(epoch + 1)

    def _earlier(self, epoch: int) -> list[dict[str, float]]:
        """Reads the rows that an interrupted run wrote before this epoch."""
        if epoch == 0 or not self.path.exists():
            return []
        with open(self.path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        return [
            {name: float(text) for name, text in row.items()} | {"epoch": number}
            for row in rows
            if (number := int(row["epoch"])) < epoch
        ]

    def _record(self, epoch: int) -> None:
        self._rows.append({"epoch": epoch, **_numbers(self.measure(self.model))})
        columns = self._rows[0].keys()
        same = columns == self._rows[-1].keys()
        received = f"path={self.path} with the columns {', '.join(columns)}"
        check(same, "path", "be a table of this callback, to resume a run", received)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_csv(self.path, self._rows)


def _numbers(values: Any, name: str = "") -> dict[str, float]:
    """Returns all numbers within nested values, by the path to each."""
    if hasattr(values, "_asdict"):
        values = values._asdict()
    if not isinstance(values, Mapping):
        values = np.asarray(values)
        if values.ndim:
            values = dict(enumerate(values, 1))
        elif np.iscomplexobj(values):
            values = {"real": values.real, "imag": values.imag}
        else:
            return {name or "value": float(values)}
    found: dict[str, float] = {}
    for key, part in values.items():
        found |= _numbers(part, f"{name}/{key}" if name else f"{key}")
    return found
