"""Optimizers of the papers, and their rules for which variable gets which."""

from keras_ortho.optimizers.rmsprop_tf1 import RMSpropTF1
from keras_ortho.optimizers.rules import paper_optimizer

__all__ = ["RMSpropTF1", "paper_optimizer"]
