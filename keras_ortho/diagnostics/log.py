"""Callbacks that log what a function measures, or missing gradients, in training."""

import csv
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_ortho.cells import ENRNNCell
from keras_ortho.checks import check_count
from keras_ortho.diagnostics.probe import keeping
from keras_ortho.files import replacing
from keras_ortho.keras_internals import layers_within
from keras_ortho.periodic_callback import PeriodicCallback


class Log(keras.callbacks.Callback):
    """Writes what a function measures of the model to a CSV file during training.

    It measures before the first epoch and after every `every`-th one. The table has a
    row for each of these moments: the number of completed epochs in the column
    `epoch`, and a column for each measured number. A dictionary gives columns named by
    its keys, an array columns named by their indices from 1 on, as in `3` or `2/5`,
    complex numbers columns `real` and `imag`, and a single number the column `value`.

    The file is complete at any moment. A run that resumes another (`initial_epoch`)
    keeps its earlier rows. Training is unaffected: the final weights are the same, bit
    for bit. What a function of this package compiles is compiled once per run.

    Args:
        path: CSV file to write, with the suffix `.csv`. Missing folders are created.
        measure: Function of the model that returns a number, an array, a named tuple,
            or a dictionary of these, such as `manifold_distances`; and the same names
            and shapes each time.
        every: Number of epochs between measurements, a positive integer. Default: 1.

    Attributes:
        history: Dictionary of the columns, lists of equal length, one of them `epoch`.

    Raises:
        ValueError: If `path` has another suffix, `measure` is not a function, or
            `every` is not a positive integer; in a resumed run, if the file has other
            columns.

    Example:

    >>> from keras_ortho.diagnostics import gradient_norms, manifold_distances
    >>> model.compile("sgd", "mse")
    >>> x, y = np.ones((8, 3, 2)), np.ones((8, 4))
    >>> logs = [
    ...     Log("distance.csv", manifold_distances),
    ...     Log("norms.csv", lambda model: gradient_norms(model, x, y), every=10),
    ... ]
    >>> history = model.fit(x, y, callbacks=logs, verbose=0)
    >>> logs[0].history["epoch"]
    [0, 1]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        measure: Callable[[Any], Any],
        *,
        every: int = 1,
    ) -> None:
        super().__init__()
        self.path = Path(path)
        if self.path.suffix != ".csv":
            raise ValueError(
                f"`path` must be a file with the suffix .csv. Received: path={path}"
            )
        if not callable(measure):
            raise ValueError(
                f"`measure` must be a function of the model. Received: {measure!r}"
            )
        self.measure = measure
        self.every: int = check_count("every", every)
        self._rows: list[dict[str, float]] | None = None
        self._compiled: dict[Any, Any] = {}

    @property
    def history(self) -> dict[str, list[float]]:
        """The table by column."""
        rows = self._rows or []
        return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Discards the rows of an earlier run, whose model may have been another."""
        self._rows = None
        self._compiled = {}

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Measures before the first epoch of a run, after `epoch` completed epochs."""
        if self._rows is None:
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
        try:
            with open(self.path, encoding="utf-8", newline="") as file:
                rows = [
                    {name: float(text) for name, text in row.items()}
                    for row in csv.DictReader(file)
                ]
            return [
                row | {"epoch": int(row["epoch"])}
                for row in rows
                if row["epoch"] < epoch
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise self._foreign(error) from error

    def _foreign(self, why: object) -> ValueError:
        return ValueError(
            f"To resume a run, `path` must be a table of this callback: {why}. "
            f"Received: path={self.path}"
        )

    def _record(self, epoch: int) -> None:
        with keeping(self._compiled):
            found = _numbers(self.measure(self.model))
        self._rows = [*(self._rows or []), {"epoch": epoch, **found}]
        columns = self._rows[0].keys()
        if columns != self._rows[-1].keys():
            raise self._foreign(f"it has the columns {', '.join(columns)}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with (
            replacing(self.path) as aside,
            open(aside, "w", encoding="utf-8", newline="") as file,
        ):
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(self._rows)


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
    return {
        place: number
        for key, part in values.items()
        for place, number in _numbers(
            part, f"{name}/{key}" if name else f"{key}"
        ).items()
    }


class MissingRadiusGradients(PeriodicCallback):
    """Counts ENRNN matrices `T` whose spectral radius uses a substitute gradient.

    A substitute is used if too many eigenvalues tie, or the dominant one is too ill
    conditioned: see `keras_ortho.parametrizations.spectral_radius`. The count of each
    epoch is added to its logs as `missing_radius_gradients`, so it is printed, and
    recorded by a `CSVLogger` or `History` that comes after this callback. The
    attribute `count` holds the total since training began.

    Each check computes the dominant eigenpair once more.

    Args:
        every: Number of updates between checks, a positive integer. With
            `steps_per_execution` above 1, the check runs at the first opportunity.
            Default: 1.

    Raises:
        ValueError: If `every` is not a positive integer.

    Example:

    ```python
    callback = MissingRadiusGradients(every=10)
    model.fit(x, y, callbacks=[callback, keras.callbacks.CSVLogger("log.csv")])
    print(callback.count)
    ```
    """

    def __init__(self, every: int = 1) -> None:
        super().__init__(every)
        self.count: int = 0
        self._of_epoch = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Resets the total count."""
        self.count = 0

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Resets the count of the epoch."""
        super().on_epoch_begin(epoch, logs)
        self._of_epoch = 0

    def act(self) -> None:
        """Checks the matrices after an update."""
        cells = (
            layer
            for layer in layers_within(self.model)
            if isinstance(layer, ENRNNCell) and not layer.frozen
        )
        missing = sum(not cell.eigenpair_report()["gradient_found"] for cell in cells)
        self.count += missing
        self._of_epoch += missing

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Adds the count of the epoch to its logs."""
        if logs is not None:
            logs["missing_radius_gradients"] = self._of_epoch
