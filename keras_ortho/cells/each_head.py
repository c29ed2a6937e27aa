"""A kernel of blocks, one for each head: what it starts with, and what holds it.

Initializers, constraints and regularizers of Keras are of a matrix. Here each acts on
every block by itself, as if the head were a layer.
"""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.free import independents


def initialize_each_head(initializer: Any, heads: int) -> Any:
    """Makes an initializer of blocks from one of a block.

    Args:
        initializer: An initializer of Keras, or one with an array, of all blocks.
        heads: Number of blocks.

    Returns:
        A function of shape and dtype that draws each block by itself.
    """
    if isinstance(initializer, keras.initializers.Constant):
        return initializer
    own = independents(initializer, heads)

    def make(shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        return ops.stack([each(shape[1:], dtype=dtype) for each in own])

    return make


def constrain_each_head(constraint: Any) -> Any:
    """Makes a constraint of blocks from one of a block.

    Args:
        constraint: A constraint of Keras, or `None`.

    Returns:
        A function of the blocks, of shape `(heads, j, k)`, or `None`.
    """
    return constraint and (lambda blocks: ops.stack(_of_each(constraint, blocks)))


def regularize_each_head(regularizer: Any) -> Any:
    """Makes a regularizer of blocks from one of a block.

    Args:
        regularizer: A regularizer of Keras, or `None`.

    Returns:
        A function that adds up what it gives for each of the blocks, of shape
        `(heads, j, k)`, or `None`.
    """
    return regularizer and (lambda blocks: sum(_of_each(regularizer, blocks)))


def _of_each(function: Callable[[Tensor], Tensor], blocks: Tensor) -> list[Tensor]:
    return [function(blocks[head]) for head in range(blocks.shape[0])]
