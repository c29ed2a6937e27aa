"""A callback that watches how a state of two numbers moves while it is trained."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_ortho.checks import check_count
from keras_ortho.diagnostics.log import DiagnosticLog, Row
from keras_ortho.diagnostics.plane import check_points, probe_trajectories
from keras_ortho.diagnostics.plane_figure import STARTS, draw_trajectories, grid


class TrajectoriesLog(DiagnosticLog):
    """Logs how a state of two numbers moves without inputs, see `trajectories`.

    The table has the columns `epoch`, `start`, `step`, `first` and `second`; the figure
    is that of the latest epoch, over its vector field.

    Args:
        path: The CSV file, with the suffix `.csv`; the figure goes beside it.
        starts: Where to start, an array of shape `(starts, 2)`. Default: three points.
        num_steps: How many steps to take, a positive integer. Default: 100.
        layer: The recurrent layer, or its name. Default: `None`, the only one.
        extent: Half the length of each axis of the figure. Default: 1.
        every: After how many epochs to measure, a positive integer. Default: 1.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If an argument is out of its range; when training begins, as
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
        self.starts = check_points("starts", starts)
        self.num_steps = check_count("num_steps", num_steps)
        self.layer = layer
        self.extent = extent

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Compiles the steps, for a model that may be another than before.

        Args:
            logs: Not used.
        """
        super().on_train_begin(logs)
        self.follow = probe_trajectories(self.model, self.layer, self.num_steps)
        self.step = probe_trajectories(self.model, self.layer, 1)

    def measure(self) -> list[Row]:
        """Measures the model as it is.

        Returns:
            A row for each state.
        """
        return [
            {"start": start, "step": step, "first": float(a), "second": float(b)}
            for start, path in enumerate(self.follow(self.starts))
            for step, (a, b) in enumerate(path)
        ]

    def draw(self, path: Path, rows: list[Row]) -> None:
        """Draws the trajectories of the latest epoch.

        Args:
            path: The PNG file.
            rows: All rows.
        """
        epoch = rows[-1]["epoch"]
        states = [(r["first"], r["second"]) for r in rows if r["epoch"] == epoch]
        paths: np.ndarray = np.reshape(states, (len(self.starts), -1, 2))
        points = grid(self.extent)
        field = self.step(points)[:, 1] - points
        draw_trajectories(path, {f"epoch {epoch}": (paths, field)}, self.extent)
