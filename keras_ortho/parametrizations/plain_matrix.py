"""A recurrent matrix stored as a weight itself, as in frozen layers."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_all_finite
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.block_diagonal import (
    block_diagonal,
    blocks_shape,
    only_blocks,
    stacked_blocks,
)


@keras.saving.register_keras_serializable(package="keras_ortho")
class PlainMatrix(Parametrization):
    """The recurrent matrix itself as a weight, with nothing to keep it orthogonal.

    `keras_ortho.freeze` uses it for the layers of a trained model.
    """

    def __init__(
        self, is_complex: bool = False, heads: int = 1, input_heads: int = 1
    ) -> None:
        self.is_complex = is_complex
        self.heads = heads
        self.input_heads = input_heads

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the matrix, or its blocks."""
        shape: tuple[int, ...] = (size, size)
        if self.heads > 1:
            shape = blocks_shape(self.heads, size // self.heads, self.is_complex)
        elif self.is_complex:
            shape = (2 * size, 2 * size)
        return [FreeVariable("recurrent_kernel", shape, "zeros", group="others")]

    def start(
        self, name: str, initializer: Any, size: int, dtype: str
    ) -> list[FreeVariable]:
        """Lists the matrix, initially zero: `freeze` sets it afterwards."""
        return self.variables(size)

    def matrix(self, *values: Tensor) -> Tensor:
        """Returns the matrix."""
        return block_diagonal(values[0]) if self.heads > 1 else values[0]

    def blocks(self, *values: Tensor) -> Tensor:
        """Returns the blocks."""
        return values[0]

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Returns the matrix, or its blocks if it is zero outside of them."""
        check_all_finite("matrix", matrix)
        if self.heads == 1:
            return (self._as_held(matrix),)
        blocks = [self._as_held(b) for b in only_blocks(matrix, self.heads)]
        return (ops.convert_to_numpy(stacked_blocks(blocks, self.is_complex)),)

    def _as_held(self, matrix: np.ndarray) -> np.ndarray:
        """Returns the real form of a complex matrix, or a real matrix itself."""
        if not self.is_complex:
            return matrix
        return np.block([[matrix.real, matrix.imag], [-matrix.imag, matrix.real]])
