"""Recurrent Keras layers whose recurrent matrix stays orthogonal or unitary.

Importing the package registers every class that a saved model may contain. What serves
speech, tasks, training and diagnostics is imported when it is named.
"""

import importlib
from types import ModuleType

from keras_ortho import (
    activations,
    cells,
    deployment,
    initializers,
    keras_metrics,  # noqa: F401 (registers metrics)
    layers,
    losses,
    optimizers,
    parametrizations,
    recurrence,
    regularizers,
)
from keras_ortho.activations import ModReLU
from keras_ortho.cells import *  # noqa: F403
from keras_ortho.deployment import freeze, initial_states, step_model
from keras_ortho.layers import BNPDense, OrthoDense, SVDDense, parametrize
from keras_ortho.version import __version__

_WHEN_NAMED = ["audio", "baselines", "data_prep", "diagnostics", "metrics"]
_WHEN_NAMED += ["networks", "tasks", "training", "training_callbacks"]

__all__ = [
    "BNPDense",
    "ModReLU",
    "OrthoDense",
    "SVDDense",
    "__version__",
    "activations",
    "cells",
    "deployment",
    "freeze",
    "initial_states",
    "initializers",
    "layers",
    "losses",
    "optimizers",
    "parametrizations",
    "parametrize",
    "recurrence",
    "regularizers",
    "step_model",
]
__all__ += _WHEN_NAMED
__all__ += cells.CLASSES


def __getattr__(name: str) -> ModuleType:
    if name in _WHEN_NAMED:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
