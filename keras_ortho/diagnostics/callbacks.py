"""Callbacks that log diagnostics during training and draw them."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_ortho.checks import check_count, check_finite, check_number
from keras_ortho.diagnostics.figures import (
    plot_eigenvalues,
    plot_gradient_norms,
    plot_heat_map,
)
from keras_ortho.diagnostics.gradient_norms import probe_gradient_norms
from keras_ortho.diagnostics.jacobians import (
    probe_end_to_end_jacobians,
    probe_input_sensitivity,
)
from keras_ortho.diagnostics.kernels import (
    kernel_eigenvalues,
    manifold_distances,
    spectral_margins,
)
from keras_ortho.diagnostics.log import DiagnosticLog, Row
from keras_ortho.diagnostics.plane import check_points, probe_trajectories
from keras_ortho.diagnostics.plane_figure import STARTS, draw_trajectories, grid
from keras_ortho.diagnostics.plots import plot_curves
from keras_ortho.diagnostics.spectra import eigenvalues


class ManifoldDistanceLog(DiagnosticLog):
    """Logs `||W* W - I||_F` of the recurrent matrices, as in `manifold_distances`.

    The table has the columns `epoch`, `matrix` and `distance`. The figure has one curve
    for each matrix. The arguments are those of `DiagnosticLog`.

    Example:

    >>> model.compile("sgd", "mse")
    >>> log = ManifoldDistanceLog("distance.csv")
    >>> history = model.fit(
    ...     np.ones((8, 3, 2)), np.ones((8, 4)), callbacks=[log], verbose=0
    ... )
    """

    def measure(self) -> list[Row]:
        """Measures the distance of each matrix."""
        return [
            {"matrix": name, "distance": distance}
            for name, distance in manifold_distances(self.model).items()
        ]

    def draw(self, path: Path, rows: list[Row]) -> None:
        """Draws the distances against the epochs."""
        _draw_over_epochs(path, rows, "distance", "||W* W - I||_F")


class SpectralMarginLog(DiagnosticLog):
    """Logs how far the singular values are from 1, as in `spectral_margins`.

    The table has the columns `epoch`, `matrix`, `smallest`, `largest` and `margin`. The
    figure has a curve of the margin for each matrix.

    Args:
        path: The CSV file, as in `DiagnosticLog`.
        center: Value with which to compare the singular values. Default: 1.
        every: Number of epochs between measurements, a positive integer. Default: 1.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: As in `DiagnosticLog`, or if `center` is not finite.

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
        self.center = check_finite("center", center)

    def measure(self) -> list[Row]:
        """Measures the margin of each matrix."""
        return [
            {"matrix": name, **margin._asdict()}
            for name, margin in spectral_margins(self.model, self.center).items()
        ]

    def draw(self, path: Path, rows: list[Row]) -> None:
        """Draws the margins against the epochs."""
        _draw_over_epochs(path, rows, "margin", f"max |sigma - {self.center:g}|")


class KernelEigenvaluesLog(DiagnosticLog):
    """Logs the eigenvalues of the recurrent matrices, as in `kernel_eigenvalues`.

    The table has the columns `epoch`, `matrix`, `index`, `real` and `imaginary`. The
    figure shows the eigenvalues of the first and the latest epoch in the complex plane.
    The arguments are those of `DiagnosticLog`.

    Example:

    >>> log = KernelEigenvaluesLog("eigenvalues.csv", every=10)
    """

    def measure(self) -> list[Row]:
        """Measures the eigenvalues of each matrix."""
        return [
            {"matrix": name, **row}
            for name, values in kernel_eigenvalues(self.model).items()
            for row in _eigenvalue_rows(values)
        ]

    def draw(self, path: Path, rows: list[Row]) -> None:
        """Draws the eigenvalues of the first and the latest epoch."""
        _draw_eigenvalues(path, rows)


class FlowLog(DiagnosticLog):
    """Base of the logs that measure one recurrent layer with a compiled function.

    Every measurement uses the same data. A subclass implements `compile_probe`,
    `measure` and `draw`.

    Args:
        path: The CSV file, as in `DiagnosticLog`.
        x: Model inputs on which to measure, a few sequences.
        layer: Recurrent layer or its name. Default: `None`, the only recurrent layer.
        state: Index of the state of the layer. `None` selects all states. Default: 0.
        units: Slice that selects units of the state. Default: `None`, all units.
        every: Number of epochs between measurements, a positive integer. Default: 1.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: As in `DiagnosticLog`; when training begins, if there is no such
            layer, state or unit.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        x: Any,
        *,
        layer: str | keras.layers.RNN | None = None,
        state: int | None = 0,
        units: slice | None = None,
        every: int = 1,
    ) -> None:
        super().__init__(path, every=every)
        self.x = x
        self.layer = layer
        self.state = state
        self.units = units


class GradientNormsLog(FlowLog):
    """Logs `||dL/dh_t||` for each time step `t`, as in `gradient_norms`.

    The table has the columns `epoch`, `t` (from 1) and `norm`. The figure has a curve
    for each of at most ten epochs.

    Args:
        path: The CSV file, as in `DiagnosticLog`.
        x: Model inputs on which to measure, one batch.
        y: Targets for `x`.
        loss: Loss, as in `gradient_norms`. Default: `None`, the loss that the model was
            compiled with.
        **kwargs: `layer`, `state`, `units` and `every`, as in `FlowLog`.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: As in `FlowLog`; when training begins, if there is not exactly one
            loss.

    Example:

    >>> model.compile("sgd", "mse")
    >>> x, y = np.ones((8, 3, 2)), np.ones((8, 4))
    >>> log = GradientNormsLog("norms.csv", x, y)
    >>> history = model.fit(x, y, callbacks=[log], verbose=0)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        x: Any,
        y: Any,
        *,
        loss: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(path, x, **kwargs)
        self.y = y
        self.loss = loss

    def compile_probe(self) -> Callable[[Any, Any], np.ndarray]:
        """Compiles a function of `x` and `y`."""
        return probe_gradient_norms(
            self.model, self.layer, self.state, self.units, self.loss
        )

    def measure(self) -> list[Row]:
        """Measures the norm at each time step."""
        norms = self.probe(self.x, self.y)
        return [{"t": t, "norm": float(norm)} for t, norm in enumerate(norms, 1)]

    def draw(self, path: Path, rows: list[Row]) -> None:
        """Draws the norms of at most ten epochs."""
        curves = {
            f"epoch {epoch}": [row["norm"] for row in group]
            for epoch, group in _grouped(rows, "epoch").items()
        }
        names = list(curves)
        places = np.linspace(0, len(names) - 1, min(10, len(names))).round()
        shown = [names[int(place)] for place in places]
        plot_gradient_norms(path, {name: curves[name] for name in shown})


class InputSensitivityLog(FlowLog):
    """Logs `||dh_tau/dx_t||` for all `tau` and `t`, as in `input_sensitivity`.

    The table has the columns `epoch`, `tau`, `t` (both from 1) and `norm`, with
    `T (T + 1) / 2` rows for `T` time steps. The figure is the heat map of the latest
    epoch. The arguments are those of `FlowLog`.

    Example:

    >>> log = InputSensitivityLog("sensitivity.csv", np.ones((2, 3, 2)), every=5)
    """

    def compile_probe(self) -> Callable[[Any], np.ndarray]:
        """Compiles a function of `x`."""
        return probe_input_sensitivity(self.model, self.layer, self.state, self.units)

    def measure(self) -> list[Row]:
        """Measures the norm for each pair of time steps `t <= tau`."""
        return [
            {"tau": tau, "t": t, "norm": float(norm)}
            for tau, norms in enumerate(self.probe(self.x), 1)
            for t, norm in enumerate(norms[:tau], 1)
        ]

    def draw(self, path: Path, rows: list[Row]) -> None:
        """Draws the heat map of the latest epoch."""
        epoch, latest = _grouped(rows, "epoch").popitem()
        time = latest[-1]["tau"]
        norms = np.zeros((time, time))
        norms[np.tril_indices(time)] = [row["norm"] for row in latest]
        plot_heat_map(path, {f"epoch {epoch}": norms})


class JacobianEigenvaluesLog(FlowLog):
    """Logs the eigenvalues of `dh_T/dh_0`, as in `jacobian_eigenvalues`.

    The table has the columns `epoch`, `sequence`, `index`, `real` and `imaginary`. The
    figure shows the eigenvalues of the first and the latest epoch in the complex plane.
    The arguments are those of `FlowLog`.

    Example:

    >>> log = JacobianEigenvaluesLog("jacobian.csv", np.ones((2, 3, 2)))
    """

    def compile_probe(self) -> Callable[[Any], np.ndarray]:
        """Compiles a function of `x`."""
        return probe_end_to_end_jacobians(
            self.model, self.layer, self.state, self.units
        )

    def measure(self) -> list[Row]:
        """Measures the eigenvalues for each sequence."""
        return [
            {"sequence": number, **row}
            for number, values in enumerate(eigenvalues(self.probe(self.x)))
            for row in _eigenvalue_rows(values)
        ]

    def draw(self, path: Path, rows: list[Row]) -> None:
        """Draws the eigenvalues of the first and the latest epoch."""
        _draw_eigenvalues(path, rows)


class TrajectoriesLog(DiagnosticLog):
    """Logs the motion of a two-dimensional state without inputs, as in `trajectories`.

    The table has the columns `epoch`, `start`, `step`, `first` and `second`. The figure
    shows the trajectories of the latest epoch over the vector field.

    Args:
        path: The CSV file, as in `DiagnosticLog`.
        starts: Initial states, an array of shape `(starts, 2)`. Default: three points.
        num_steps: Number of steps, a positive integer. Default: 100.
        layer: Recurrent layer or its name. Default: `None`, the only recurrent layer.
        extent: Half the length of each axis of the figure. Default: 1.
        every: Number of epochs between measurements, a positive integer. Default: 1.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If an argument is out of range; when training begins, as in
            `trajectories`.

    Example:

    >>> log = TrajectoriesLog("plane.csv", num_steps=50)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        starts: Any = STARTS,
        num_steps: int = 100,
        *,
        layer: str | keras.layers.RNN | None = None,
        extent: float = 1.0,
        every: int = 1,
    ) -> None:
        super().__init__(path, every=every)
        self.starts: np.ndarray = check_points("starts", starts)
        self.num_steps: int = check_count("num_steps", num_steps)
        self.layer = layer
        self.extent = check_number("extent", extent, positive=True)

    def compile_probe(self) -> Callable[[Any], np.ndarray]:
        """Compiles a function of `starts`, and one that takes a single step."""
        self.step: Callable[[Any], np.ndarray]
        self.step = probe_trajectories(self.model, self.layer, 1)
        return probe_trajectories(self.model, self.layer, self.num_steps)

    def measure(self) -> list[Row]:
        """Measures the state after each step."""
        return [
            {"start": start, "step": step, "first": float(a), "second": float(b)}
            for start, path in enumerate(self.probe(self.starts))
            for step, (a, b) in enumerate(path)
        ]

    def draw(self, path: Path, rows: list[Row]) -> None:
        """Draws the trajectories of the latest epoch."""
        epoch, latest = _grouped(rows, "epoch").popitem()
        states = [(row["first"], row["second"]) for row in latest]
        paths: np.ndarray = np.reshape(states, (len(self.starts), -1, 2))
        points = grid(self.extent)
        field = self.step(points)[:, 1] - points
        draw_trajectories(path, {f"epoch {epoch}": (paths, field)}, self.extent)


def _grouped(rows: Sequence[Row], column: str) -> dict[Any, list[Row]]:
    """Groups the rows by their value in a column, in the order of the table."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[column], []).append(row)
    return groups


def _draw_over_epochs(path: Path, rows: list[Row], column: str, label: str) -> None:
    """Draws a column against the epochs, as one curve for each matrix."""
    matrices = _grouped(rows, "matrix")
    curves, epochs = (
        {name: [row[each] for row in group] for name, group in matrices.items()}
        for each in (column, "epoch")
    )
    plot_curves(path, curves, x=epochs, ylabel=label, log=True)


def _eigenvalue_rows(values: np.ndarray) -> list[Row]:
    return [
        {"index": i, "real": float(value.real), "imaginary": float(value.imag)}
        for i, value in enumerate(values)
    ]


def _draw_eigenvalues(path: Path, rows: list[Row]) -> None:
    """Draws the eigenvalues of each matrix at the first and the latest epoch."""
    shown: dict[str, list[complex]] = {}
    for row in rows:
        if row["epoch"] in (rows[0]["epoch"], rows[-1]["epoch"]):
            name = f"{row['matrix']}, " if "matrix" in row else ""
            values = shown.setdefault(f"{name}epoch {row['epoch']}", [])
            values.append(complex(row["real"], row["imaginary"]))
    plot_eigenvalues(path, {name: np.array(values) for name, values in shown.items()})
