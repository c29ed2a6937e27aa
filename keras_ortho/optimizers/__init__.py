"""Optimizers for recurrent matrices, and the groups of variables that they train."""

from keras_ortho.optimizers.groups import (
    GroupOptimizer,
    OptimizerGroups,
    group_of,
    set_group,
)
from keras_ortho.optimizers.rmsprop_tf1 import RMSpropTF1
from keras_ortho.optimizers.rules import paper_optimizer, two_rate_adam
from keras_ortho.optimizers.stiefel import StiefelDescent

__all__ = [
    "GroupOptimizer",
    "OptimizerGroups",
    "RMSpropTF1",
    "StiefelDescent",
    "group_of",
    "paper_optimizer",
    "set_group",
    "two_rate_adam",
]
