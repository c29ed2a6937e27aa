"""Recurrent Keras layers whose recurrent matrix stays orthogonal."""

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
]
