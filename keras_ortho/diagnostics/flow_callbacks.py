"""Callbacks that watch how gradients flow through time while a model is trained."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from keras_ortho.diagnostics.end_to_end import probe_end_to_end_jacobians
from keras_ortho.diagnostics.figures import plot_gradient_norms, plot_heat_map
from keras_ortho.diagnostics.flow_log import FlowLog
from keras_ortho.diagnostics.gradient_norms import probe_gradient_norms
from keras_ortho.diagnostics.input_sensitivity import probe_input_sensitivity
from keras_ortho.diagnostics.kernel_callbacks import draw_eigenvalues, eigenvalue_rows
from keras_ortho.diagnostics.log import Row
from keras_ortho.diagnostics.spectra import eigenvalues


class GradientNormsLog(FlowLog):
    """Logs `||dL/dh_t||` for each step `t`, see `gradient_norms`.

    The table has the columns `epoch`, `t` from 1 on, and `norm`; the figure has a curve
    for each of at most ten epochs.

    Args:
        path: The CSV file, with the suffix `.csv`; the figure goes beside it.
        x: Inputs of the model to measure on, one batch.
        y: What the loss compares its outputs with.
        loss: The loss. Default: `None`, the one that the model was compiled with.
        **kwargs: `layer`, `state`, `units` and `every`, as of `FlowLog`.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: As `FlowLog`; when training begins, if there is no one loss.

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

    def compile_probe(self) -> Callable[..., np.ndarray]:
        """Compiles the measurement for the model.

        Returns:
            A function of `x` and `y`.
        """
        return probe_gradient_norms(
            self.model, self.layer, self.state, self.units, self.loss
        )

    def measure(self) -> list[Row]:
        """Measures the model as it is.

        Returns:
            A row for each step.
        """
        norms = self.probe(self.x, self.y)
        return [{"t": t, "norm": float(norm)} for t, norm in enumerate(norms, 1)]

    def draw(self, path: Path, rows: list[Row]) -> None:
        """Draws the norms.

        Args:
            path: The PNG file.
            rows: All rows.
        """
        curves: dict[int, list[float]] = {}
        for row in rows:
            curves.setdefault(row["epoch"], []).append(row["norm"])
        known = list(curves)
        places = np.linspace(0, len(known) - 1, min(10, len(known))).round()
        shown = [known[int(place)] for place in places]
        plot_gradient_norms(path, {f"epoch {e}": curves[e] for e in shown})


class InputSensitivityLog(FlowLog):
    """Logs `||dh_tau/dx_t||` for all `tau` and `t`, see `input_sensitivity`.

    The table has the columns `epoch`, `tau`, `t`, both from 1 on, and `norm`, with
    T (T + 1) / 2 rows for T steps; the figure is the heat map of the latest epoch. The
    arguments are those of `FlowLog`.

    Example:

    >>> log = InputSensitivityLog("sensitivity.csv", np.ones((2, 3, 2)), every=5)
    """

    def compile_probe(self) -> Callable[..., np.ndarray]:
        """Compiles the measurement for the model.

        Returns:
            A function of `x`.
        """
        return probe_input_sensitivity(self.model, self.layer, self.state, self.units)

    def measure(self) -> list[Row]:
        """Measures the model as it is.

        Returns:
            A row for each pair of steps `t <= tau`.
        """
        return [
            {"tau": tau, "t": t, "norm": float(norm)}
            for tau, row in enumerate(self.probe(self.x), 1)
            for t, norm in enumerate(row[:tau], 1)
        ]

    def draw(self, path: Path, rows: list[Row]) -> None:
        """Draws the map of the latest epoch.

        Args:
            path: The PNG file.
            rows: All rows.
        """
        epoch, time = rows[-1]["epoch"], rows[-1]["tau"]
        norms = np.zeros((time, time))
        for row in rows:
            if row["epoch"] == epoch:
                norms[row["tau"] - 1, row["t"] - 1] = row["norm"]
        plot_heat_map(path, {f"epoch {epoch}": norms})


class JacobianEigenvaluesLog(FlowLog):
    """Logs the eigenvalues of `dh_T/dh_0`, see `jacobian_eigenvalues`.

    The table has the columns `epoch`, `sequence`, `index`, `real` and `imaginary`; the
    figure shows those of the first and of the latest epoch in the complex plane. The
    arguments are those of `FlowLog`.

    Example:

    >>> log = JacobianEigenvaluesLog("jacobian.csv", np.ones((2, 3, 2)))
    """

    def compile_probe(self) -> Callable[..., np.ndarray]:
        """Compiles the measurement for the model.

        Returns:
            A function of `x`.
        """
        return probe_end_to_end_jacobians(
            self.model, self.layer, self.state, self.units
        )

    def measure(self) -> list[Row]:
        """Measures the model as it is.

        Returns:
            A row for each eigenvalue of each sequence.
        """
        return [
            {"sequence": number, **row}
            for number, values in enumerate(eigenvalues(self.probe(self.x)))
            for row in eigenvalue_rows(values)
        ]

    def draw(self, path: Path, rows: list[Row]) -> None:
        """Draws the eigenvalues.

        Args:
            path: The PNG file.
            rows: All rows.
        """
        draw_eigenvalues(path, rows)
