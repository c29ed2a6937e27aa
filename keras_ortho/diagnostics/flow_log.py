"""What the callbacks that watch the flow through time share."""

import os
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

from keras_ortho.diagnostics.log import DiagnosticLog


class FlowLog(DiagnosticLog):
    """A log of what a compiled function measures of one recurrent layer.

    It is compiled once, and measures on the same data at all epochs.

    A subclass gives `compile_probe`, `measure` and `draw`.

    Args:
        path: The CSV file, with the suffix `.csv`; the figure goes beside it.
        x: Inputs of the model to measure on, a few sequences.
        layer: The recurrent layer, or its name. Default: `None`, the only one.
        state: Which state of the layer; `None` is all of them. Default: 0.
        units: Which units of the state, a slice. Default: `None`, all.
        every: After how many epochs to measure, a positive integer. Default: 1.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If `path` has another suffix, or `every` is not positive; when
            training begins, if there is no such layer, state or unit.
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

    def compile_probe(self) -> Callable[..., np.ndarray]:
        """Compiles the measurement for the model.

        Returns:
            A function of data.
        """
        raise NotImplementedError

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Compiles the measurement, for a model that may be another than before.

        Args:
            logs: Not used.
        """
        super().on_train_begin(logs)
        self.probe = self.compile_probe()
