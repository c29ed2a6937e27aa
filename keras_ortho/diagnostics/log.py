"""The base of callbacks that log measurements to a table and a figure."""

import csv
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import keras

from keras_ortho.checks import check_count
from keras_ortho.extras import require
from keras_ortho.files import replacing

Row = dict[str, Any]


class DiagnosticLog(keras.callbacks.Callback):
    """Logs measurements before the first epoch and after epochs, as CSV and PNG.

    Both files are written under a temporary name and renamed, so they are never
    incomplete. The column `epoch` of the table counts the completed epochs, from 0. A
    run that resumes another (`initial_epoch`) keeps its earlier rows. Training is
    unaffected: the final weights are the same, bit for bit.

    A subclass implements `measure` and `draw`, and `compile_probe` if there is
    something to compile.

    Args:
        path: CSV file to write, with the suffix `.csv`. The figure has the same path
            with the suffix `.png`. Missing folders are created.
        every: Number of epochs between measurements, a positive integer. Default: 1.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If `path` has another suffix, or `every` is not a positive integer.
    """

    # Columns of text and columns of integers. All others hold floats.
    texts: frozenset[str] = frozenset({"matrix"})
    counts: frozenset[str] = frozenset(
        {"epoch", "t", "tau", "sequence", "index", "start", "step"}
    )

    def __init__(self, path: str | os.PathLike[str], *, every: int = 1) -> None:
        super().__init__()
        self.path: Path = Path(path)
        if self.path.suffix != ".csv":
            raise ValueError(
                f"`path` must be a file with the suffix .csv. Received: path={path}"
            )
        self.every: int = check_count("every", every)
        require("matplotlib.figure", extra="plot")  # Fail now, not after an epoch.
        self.rows: list[Row] | None = None

    def compile_probe(self) -> Callable[..., Any] | None:
        """Compiles the function that `measure` needs, once when training begins.

        Returns:
            The value that is stored as `self.probe`. By default `None`.
        """
        return None

    def measure(self) -> list[Row]:
        """Measures the current model.

        Returns:
            Rows of the table, all with the same columns, without `epoch`.
        """
        raise NotImplementedError

    def draw(self, path: Path, rows: list[Row]) -> None:
        """Draws the table.

        Args:
            path: PNG file to write.
            rows: All rows of the table, at least one.
        """
        raise NotImplementedError

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Discards the rows of an earlier run, whose model may have been another."""
        self.rows = None
        self.probe: Any = self.compile_probe()

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Measures before the first epoch of a run, after `epoch` completed epochs."""
        if self.rows is None:
            self.rows = self._earlier(epoch)
            if not self.rows or epoch % self.every == 0:
                self._record(epoch)

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Measures after an epoch, when `epoch + 1` epochs are completed."""
        if (epoch + 1) % self.every == 0:
            self._record(epoch + 1)

    def _earlier(self, epoch: int) -> list[Row]:
        """Reads the rows that an interrupted run wrote before this epoch."""
        if epoch == 0 or not self.path.exists():
            return []
        try:
            with open(self.path, newline="") as file:
                rows = [self._read(row) for row in csv.DictReader(file)]
            return [row for row in rows if row["epoch"] < epoch]
        except (KeyError, TypeError, ValueError) as error:
            raise self._foreign(error) from error

    def _foreign(self, why: object) -> ValueError:
        return ValueError(
            f"To resume a run, `path` must be a table of this callback: {why}. "
            f"Received: path={self.path}"
        )

    def _read(self, row: dict[str, str]) -> Row:
        kinds = dict.fromkeys(self.counts, int) | dict.fromkeys(self.texts, str)
        return {name: kinds.get(name, float)(text) for name, text in row.items()}

    def _record(self, epoch: int) -> None:
        found = [{"epoch": epoch, **row} for row in self.measure()]
        if not found:
            raise ValueError(
                f"`model` contains nothing that `{type(self).__name__}` measures. "
                f"Received: {self.model.name}"
            )
        self.rows = [*(self.rows or []), *found]
        if self.rows[0].keys() != found[0].keys():
            raise self._foreign(f"it has the columns {', '.join(self.rows[0])}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with (
            replacing(self.path) as aside,
            open(aside, "w", newline="") as file,
        ):
            writer = csv.DictWriter(file, self.rows[0])
            writer.writeheader()
            writer.writerows(self.rows)
        self.draw(self.path.with_suffix(".png"), self.rows)
