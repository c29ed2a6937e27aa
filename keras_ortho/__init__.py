"""Recurrent Keras layers whose recurrent matrix stays orthogonal or unitary.

Importing the package loads neither Keras nor a backend; accessing a name that needs
them does. The classes that a saved model may contain are registered as soon as both
Keras and the package have been imported, in either order.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from keras_ortho.architectures import CLASSES
from keras_ortho.keras_import import after_keras
from keras_ortho.version import __version__ as __version__

if TYPE_CHECKING:
    from keras_ortho import activations as activations
    from keras_ortho import audio as audio
    from keras_ortho import baselines as baselines
    from keras_ortho import cells as cells
    from keras_ortho import data_prep as data_prep
    from keras_ortho import deployment as deployment
    from keras_ortho import diagnostics as diagnostics
    from keras_ortho import executors as executors
    from keras_ortho import initializers as initializers
    from keras_ortho import layers as layers
    from keras_ortho import losses as losses
    from keras_ortho import metrics as metrics
    from keras_ortho import networks as networks
    from keras_ortho import optimizers as optimizers
    from keras_ortho import parametrizations as parametrizations
    from keras_ortho import recurrence as recurrence
    from keras_ortho import regularizers as regularizers
    from keras_ortho import tasks as tasks
    from keras_ortho import training as training
    from keras_ortho import training_callbacks as training_callbacks
    from keras_ortho.activations import ModReLU as ModReLU
    from keras_ortho.cells import *  # noqa: F403
    from keras_ortho.deployment import freeze as freeze
    from keras_ortho.deployment import initial_states as initial_states
    from keras_ortho.deployment import step_model as step_model
    from keras_ortho.layers import BNPDense as BNPDense
    from keras_ortho.layers import OrthoDense as OrthoDense
    from keras_ortho.layers import SVDDense as SVDDense

_PUBLIC = [
    *CLASSES,
    "BNPDense",
    "ModReLU",
    "OrthoDense",
    "SVDDense",
    "__version__",
    "activations",
    "audio",
    "baselines",
    "cells",
    "data_prep",
    "deployment",
    "diagnostics",
    "executors",
    "freeze",
    "initial_states",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "networks",
    "optimizers",
    "parametrizations",
    "recurrence",
    "regularizers",
    "step_model",
    "tasks",
    "training",
    "training_callbacks",
]
# The modules that define the names above or other objects that Keras can save.
_REGISTERING = (
    "activations",
    "cells",
    "layers",
    "deployment",
    "baselines",
    "initializers",
    "losses",
    "metrics",
    "optimizers",
    "parametrizations",
    "regularizers",
)


def _register() -> None:
    for name in _REGISTERING:
        module = vars(importlib.import_module(f"{__name__}.{name}"))
        globals().update({name: module[name] for name in _PUBLIC if name in module})


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})


# Hidden from type checkers: they understand only a literal `__all__`, and assume that
# a module with `__getattr__` has every name.
if not TYPE_CHECKING:
    __all__ = _PUBLIC

    def __getattr__(name: str) -> Any:
        """Imports a submodule, or the module of a public name, on first access."""
        if importlib.util.find_spec(f"{__name__}.{name}"):
            return importlib.import_module(f"{__name__}.{name}")
        if name in _PUBLIC:
            _register()
            return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


after_keras(_register)
