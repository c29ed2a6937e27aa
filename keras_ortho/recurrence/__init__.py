"""Recurrences over whole sequences, with their own gradient."""

from keras_ortho.recurrence.pointwise import Opaque, Pointwise, find
from keras_ortho.recurrence.sequence import recurrence
from keras_ortho.recurrence.updates import (
    Euler,
    GatedEuler,
    Plain,
    Products,
    ResetAndUpdate,
    Update,
    Weights,
)

__all__ = [
    "Euler",
    "GatedEuler",
    "Opaque",
    "Plain",
    "Pointwise",
    "Products",
    "ResetAndUpdate",
    "Update",
    "Weights",
    "find",
    "recurrence",
]
