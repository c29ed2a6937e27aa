"""The recurrence over a whole sequence, with its gradient."""

from keras_ortho.recurrence.pointwise import Pointwise, find
from keras_ortho.recurrence.sequence import recurrence

__all__ = ["Pointwise", "find", "recurrence"]
