"""Optimizers of the papers, and their rules for which variable gets which."""

from keras_ortho.optimizers.rmsprop_tf1 import RMSpropTF1
from keras_ortho.optimizers.rules import paper_optimizer
from keras_ortho.optimizers.stiefel import StiefelDescent

__all__ = ["RMSpropTF1", "StiefelDescent", "paper_optimizer"]
