"""Initializers, constraints and regularizers for a kernel with one block per head.

Keras's initializers, constraints and regularizers act on a matrix. Here each acts on
every block separately, as if each head were a layer.
"""

from typing import Any

import keras
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.free_initializers import independents


def initialize_each_head(initializer: Any, heads: int) -> Any:
    """Makes an initializer for all blocks, unless it is an array that has them all."""
    if isinstance(initializer, keras.initializers.Constant):
        return initializer
    own = independents(initializer, heads)

    def make(shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        return ops.stack([each(shape[1:], dtype=dtype) for each in own])

    return make


def constrain_each_head(constraint: Any) -> Any:
    """Makes a constraint for all blocks from one for a single block, or `None`."""
    return constraint and (lambda x: ops.stack([constraint(b) for b in _blocks(x)]))


def regularize_each_head(regularizer: Any) -> Any:
    """Makes a regularizer that sums the penalties of all blocks, or `None`."""
    return regularizer and (lambda x: sum(regularizer(b) for b in _blocks(x)))


def _blocks(kernel: Tensor) -> list[Tensor]:
    return [kernel[head] for head in range(kernel.shape[0])]
