"""Initializers, constraints and regularizers for a kernel with one block per head.

Keras's initializers, constraints and regularizers act on a matrix. Here each acts on
every block separately, as if each head were a layer.
"""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.free import independents


def initialize_each_head(initializer: Any, heads: int) -> Any:
    """Makes an initializer for all blocks from an initializer for one block.

    Args:
        initializer: A Keras initializer, or a `Constant` whose array has all blocks.
        heads: Number of blocks.

    Returns:
        A function of shape and dtype that draws each block separately, or the
        `Constant` itself.
    """
    if isinstance(initializer, keras.initializers.Constant):
        return initializer
    own = independents(initializer, heads)

    def make(shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        return ops.stack([each(shape[1:], dtype=dtype) for each in own])

    return make


def constrain_each_head(constraint: Any) -> Any:
    """Makes a constraint for all blocks from a constraint for one block.

    Args:
        constraint: A Keras constraint, or `None`.

    Returns:
        A function of the blocks, of shape `(heads, j, k)`, or `None`.
    """
    return constraint and (lambda blocks: ops.stack(_of_each(constraint, blocks)))


def regularize_each_head(regularizer: Any) -> Any:
    """Makes a regularizer for all blocks from a regularizer for one block.

    Args:
        regularizer: A Keras regularizer, or `None`.

    Returns:
        A function of the blocks, of shape `(heads, j, k)`, that sums their penalties,
        or `None`.
    """
    return regularizer and (lambda blocks: sum(_of_each(regularizer, blocks)))


def _of_each(function: Callable[[Tensor], Tensor], blocks: Tensor) -> list[Tensor]:
    return [function(blocks[head]) for head in range(blocks.shape[0])]
