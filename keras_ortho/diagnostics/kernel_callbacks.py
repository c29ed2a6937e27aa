"""Callbacks that watch the recurrent matrices of a model while it is trained."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from keras_ortho.diagnostics.figures import plot_eigenvalues
from keras_ortho.diagnostics.kernels import (
    kernel_eigenvalues,
    manifold_distances,
    spectral_margins,
)
from keras_ortho.diagnostics.log import DiagnosticLog, Row
from keras_ortho.diagnostics.plots import plot_curves


class ManifoldDistanceLog(DiagnosticLog):
    """Logs `||W* W - I||_F` of every recurrent matrix, see `manifold_distances`.

    The table has the columns `epoch`, `matrix` and `distance`; the figure has one
    curve for each matrix.

    Args:
        path: The CSV file, with the suffix `.csv`; the figure goes beside it.
        every: After how many epochs to measure, a positive integer. Default: 1.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If `path` has another suffix, or `every` is not positive.

    Example:

    >>> model.compile("sgd", "mse")
    >>> log = ManifoldDistanceLog("distance.csv")
    >>> history = model.fit(
    ...     np.ones((8, 3, 2)), np.ones((8, 4)), callbacks=[log], verbose=0
    ... )
    """

    def measure(self) -> list[Row]:
        """Measures the model as it is.

        Returns:
            A row for each matrix.
        """
        return [
            {"matrix": name, "distance": distance}
            for name, distance in manifold_distances(self.model).items()
        ]

    def draw(self, path: Path, rows: list[Row]) -> None:
        """Draws the distances.

        Args:
            path: The PNG file.
            rows: All rows.
        """
        _draw_over_epochs(path, rows, "distance", "||W* W - I||_F")


class SpectralMarginLog(DiagnosticLog):
    """Logs how far the singular values are from 1, see `spectral_margins`.

    The table has the columns `epoch`, `matrix`, `smallest`, `largest` and `margin`; the
    figure has a curve of the margin for each matrix.

    Args:
        path: The CSV file, with the suffix `.csv`; the figure goes beside it.
        center: What the singular values are compared with. Default: 1.
        every: After how many epochs to measure, a positive integer. Default: 1.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If `path` has another suffix, or `every` is not positive.

    Example:

    >>> log = SpectralMarginLog("margin.csv")
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        center: float = 1.0,
        every: int = 1,
    ) -> None:
        super().__init__(path, every=every)
        self.center = center

    def measure(self) -> list[Row]:
        """Measures the model as it is.

        Returns:
            A row for each matrix.
        """
        return [
            {"matrix": name, **margin._asdict()}
            for name, margin in spectral_margins(self.model, self.center).items()
        ]

    def draw(self, path: Path, rows: list[Row]) -> None:
        """Draws the margins.

        Args:
            path: The PNG file.
            rows: All rows.
        """
        _draw_over_epochs(path, rows, "margin", f"max |sigma - {self.center:g}|")


class KernelEigenvaluesLog(DiagnosticLog):
    """Logs the eigenvalues of every recurrent matrix, see `kernel_eigenvalues`.

    The table has the columns `epoch`, `matrix`, `index`, `real` and `imaginary`; the
    figure shows those of the first and of the latest epoch in the complex plane.

    Args:
        path: The CSV file, with the suffix `.csv`; the figure goes beside it.
        every: After how many epochs to measure, a positive integer. Default: 1.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If `path` has another suffix, or `every` is not positive.

    Example:

    >>> log = KernelEigenvaluesLog("eigenvalues.csv", every=10)
    """

    def measure(self) -> list[Row]:
        """Measures the model as it is.

        Returns:
            A row for each eigenvalue of each matrix.
        """
        return [
            {"matrix": name, **row}
            for name, values in kernel_eigenvalues(self.model).items()
            for row in eigenvalue_rows(values)
        ]

    def draw(self, path: Path, rows: list[Row]) -> None:
        """Draws the eigenvalues.

        Args:
            path: The PNG file.
            rows: All rows.
        """
        draw_eigenvalues(path, rows)


def eigenvalue_rows(values: np.ndarray) -> list[Row]:
    """Writes eigenvalues as rows of a table.

    Args:
        values: Complex array of shape `(n,)`.

    Returns:
        Rows with the columns `index`, `real` and `imaginary`.
    """
    return [
        {"index": i, "real": float(value.real), "imaginary": float(value.imag)}
        for i, value in enumerate(values)
    ]


def draw_eigenvalues(path: Path, rows: list[Row]) -> None:
    """Draws the eigenvalues of the first and of the latest epoch.

    Args:
        path: The PNG file.
        rows: All rows, with the columns `epoch`, `real` and `imaginary`, and where
            there are several matrices `matrix`.
    """
    shown: dict[str, list[complex]] = {}
    for row in rows:
        if row["epoch"] in (rows[0]["epoch"], rows[-1]["epoch"]):
            name = f"{row['matrix']}, " if "matrix" in row else ""
            values = shown.setdefault(f"{name}epoch {row['epoch']}", [])
            values.append(complex(row["real"], row["imaginary"]))
    plot_eigenvalues(path, {name: np.array(values) for name, values in shown.items()})


def _draw_over_epochs(path: Path, rows: list[Row], column: str, label: str) -> None:
    curves: dict[str, list[Any]] = {}
    epochs: dict[str, list[int]] = {}
    for row in rows:
        curves.setdefault(row["matrix"], []).append(row[column])
        epochs.setdefault(row["matrix"], []).append(row["epoch"])
    plot_curves(path, curves, x=epochs, ylabel=label, log=True)
