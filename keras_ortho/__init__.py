"""Recurrent Keras layers whose recurrent matrix stays orthogonal.

Importing the package registers all that a saved model may hold.
"""

from keras_ortho import initializers, losses, metrics, optimizers
from keras_ortho.activations import ModReLU
from keras_ortho.cells import RecurrentCell, RecurrentLayer, ScoRNN, ScoRNNCell
from keras_ortho.version import __version__

__all__ = [
    "ModReLU",
    "RecurrentCell",
    "RecurrentLayer",
    "ScoRNN",
    "ScoRNNCell",
    "__version__",
    "initializers",
    "losses",
    "metrics",
    "optimizers",
]
