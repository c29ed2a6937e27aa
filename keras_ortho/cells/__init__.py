# ruff: noqa: F403, I001 (each file says what is public; the order is that of tables)
"""One file per architecture, with its cell and its layer."""

from typing import TYPE_CHECKING

from keras_ortho.cells.cell import *
from keras_ortho.cells.layer import *
from keras_ortho.cells.scornn import *
from keras_ortho.cells.scurnn import *
from keras_ortho.cells.enrnn import *
from keras_ortho.cells.antisymmetric import *
from keras_ortho.cells.svdrnn import *
from keras_ortho.cells.ornn import *
from keras_ortho.cells.urnn import *
from keras_ortho.cells.full_urnn import *
from keras_ortho.cells.eurnn import *
from keras_ortho.cells.goru import *
from keras_ortho.cells.nnrnn import *
from keras_ortho.cells.factorized import *
from keras_ortho.cells.ortho import *

CLASSES = [name for name, value in globals().items() if isinstance(value, type)]
if not TYPE_CHECKING:  # Type checkers understand only a literal list, or none.
    __all__ = CLASSES
