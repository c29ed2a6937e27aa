"""Recurrent Keras layers whose recurrent matrix stays orthogonal.

To import the package loads neither Keras nor a backend: that takes something of the
package that needs them. What a saved model may hold is registered as soon as both Keras
and the package are imported, in either order.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from keras_ortho.keras_import import after_keras
from keras_ortho.version import __version__

if TYPE_CHECKING:
    from keras_ortho import (
        audio,
        baselines,
        cells,
        data_prep,
        diagnostics,
        initializers,
        layers,
        losses,
        metrics,
        optimizers,
        parametrizations,
        regularizers,
        tasks,
    )
    from keras_ortho.activations import ModReLU
    from keras_ortho.cells import (
        ENRNN,
        EURNN,
        GORU,
        NNRNN,
        ORNN,
        SVDRNN,
        AntisymmetricRNN,
        AntisymmetricRNNCell,
        ENRNNCell,
        EURNNCell,
        FactorizedRNN,
        FactorizedRNNCell,
        FullURNN,
        FullURNNCell,
        GORUCell,
        NNRNNCell,
        ORNNCell,
        OrthoRNN,
        OrthoRNNCell,
        RecurrentCell,
        RecurrentLayer,
        RestrictedURNN,
        RestrictedURNNCell,
        ScoRNN,
        ScoRNNCell,
        ScuRNN,
        ScuRNNCell,
        SVDRNNCell,
    )
    from keras_ortho.layers import BNPDense, OrthoDense, SVDDense

__all__ = [
    "ENRNN",
    "EURNN",
    "GORU",
    "NNRNN",
    "ORNN",
    "SVDRNN",
    "AntisymmetricRNN",
    "AntisymmetricRNNCell",
    "BNPDense",
    "ENRNNCell",
    "EURNNCell",
    "FactorizedRNN",
    "FactorizedRNNCell",
    "FullURNN",
    "FullURNNCell",
    "GORUCell",
    "ModReLU",
    "NNRNNCell",
    "ORNNCell",
    "OrthoDense",
    "OrthoRNN",
    "OrthoRNNCell",
    "RecurrentCell",
    "RecurrentLayer",
    "RestrictedURNN",
    "RestrictedURNNCell",
    "SVDDense",
    "SVDRNNCell",
    "ScoRNN",
    "ScoRNNCell",
    "ScuRNN",
    "ScuRNNCell",
    "__version__",
    "audio",
    "baselines",
    "cells",
    "data_prep",
    "diagnostics",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "optimizers",
    "parametrizations",
    "regularizers",
    "tasks",
]

# The modules of the classes above, and those of all else that Keras can save.
_REGISTERING = (
    "activations",
    "cells",
    "layers",
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
        globals().update({name: module[name] for name in __all__ if name in module})


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


# Type checkers take a module with this function for one that has every name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Loads a module, or a class with its module, when it is first asked for."""
        if importlib.util.find_spec(f"{__name__}.{name}"):
            return importlib.import_module(f"{__name__}.{name}")
        if name in __all__:
            _register()
            return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


after_keras(_register)
