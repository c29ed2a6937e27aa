"""One file an architecture: its cell, and its layer."""

from keras_ortho.cells.base import RecurrentCell
from keras_ortho.cells.layer import RecurrentLayer
from keras_ortho.cells.scornn import ScoRNN, ScoRNNCell

__all__ = ["RecurrentCell", "RecurrentLayer", "ScoRNN", "ScoRNNCell"]
