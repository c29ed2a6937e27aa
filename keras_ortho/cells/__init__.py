"""One file an architecture: its cell, and its layer."""

from keras_ortho.cells.antisymmetric import AntisymmetricRNN, AntisymmetricRNNCell
from keras_ortho.cells.base import RecurrentCell
from keras_ortho.cells.enrnn import ENRNN, ENRNNCell
from keras_ortho.cells.eurnn import EURNN, EURNNCell
from keras_ortho.cells.factorized import FactorizedRNN, FactorizedRNNCell
from keras_ortho.cells.full_urnn import FullURNN, FullURNNCell
from keras_ortho.cells.goru import GORU, GORUCell
from keras_ortho.cells.layer import RecurrentLayer
from keras_ortho.cells.nnrnn import NNRNN, NNRNNCell
from keras_ortho.cells.ornn import ORNN, ORNNCell
from keras_ortho.cells.ortho import OrthoRNN, OrthoRNNCell
from keras_ortho.cells.scornn import ScoRNN, ScoRNNCell
from keras_ortho.cells.scurnn import ScuRNN, ScuRNNCell
from keras_ortho.cells.svdrnn import SVDRNN, SVDRNNCell
from keras_ortho.cells.urnn import RestrictedURNN, RestrictedURNNCell

__all__ = [
    "ENRNN",
    "EURNN",
    "GORU",
    "NNRNN",
    "ORNN",
    "SVDRNN",
    "AntisymmetricRNN",
    "AntisymmetricRNNCell",
    "ENRNNCell",
    "EURNNCell",
    "FactorizedRNN",
    "FactorizedRNNCell",
    "FullURNN",
    "FullURNNCell",
    "GORUCell",
    "NNRNNCell",
    "ORNNCell",
    "OrthoRNN",
    "OrthoRNNCell",
    "RecurrentCell",
    "RecurrentLayer",
    "RestrictedURNN",
    "RestrictedURNNCell",
    "SVDRNNCell",
    "ScoRNN",
    "ScoRNNCell",
    "ScuRNN",
    "ScuRNNCell",
]
