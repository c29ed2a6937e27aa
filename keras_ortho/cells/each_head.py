"""The settings of a kernel with one block per head, as if each head were a layer."""

from typing import Any

import keras
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.free_initializers import independents


def of_each_head(
    heads: int, initializer: Any, regularizer: Any, constraint: Any
) -> tuple[Any, Any, Any]:
    """Makes an initializer, regularizer and constraint that act on each block."""
    own = independents(initializer, heads)

    def drawn(shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        return ops.stack([each(shape[1:], dtype=dtype) for each in own])

    def penalty(kernel: Tensor) -> Tensor:
        return sum(regularizer(kernel[head]) for head in range(heads))

    def constrained(kernel: Tensor) -> Tensor:
        return ops.stack([constraint(kernel[head]) for head in range(heads)])

    # An array has all blocks.
    is_array = isinstance(initializer, keras.initializers.Constant)
    start = initializer if is_array else drawn
    return start, regularizer and penalty, constraint and constrained
