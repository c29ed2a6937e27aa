"""Matrices that are variables themselves: unitary ones, and those of frozen layers."""

import contextlib
import contextvars
import warnings
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_all_finite
from keras_ortho.parametrizations.arithmetic import (
    block,
    block_diagonal,
    blocks_shape,
    only_blocks,
    real_form,
)
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.orthogonality import nearest_unitary, random_unitary
from keras_ortho.parametrizations.restricted_unitary import UnitaryComposition

_KEPT = contextvars.ContextVar("kept_unitary", default=False)


@contextlib.contextmanager
def keeping_unitary() -> Iterator[None]:
    """Marks the updates in its context as ones that keep unitary matrices unitary."""
    token = _KEPT.set(True)
    try:
        yield
    finally:
        _KEPT.reset(token)


@keras.saving.register_keras_serializable(package="keras_ortho")
class KeptUnitary(keras.constraints.Constraint):
    """Constraint that warns if the optimizer does not keep a unitary matrix unitary.

    Keras's optimizers call the constraint of a variable after each update or, if the
    update is compiled, once during tracing. The matrix is not changed.
    """

    def __call__(self, value: Any) -> Any:
        """Warns, unless in `keeping_unitary`."""
        if not _KEPT.get():
            warnings.warn(
                "The optimizer does not keep the recurrent matrix of `FullURNN`, "
                "`recurrent_unitary`, unitary. Compile the model with "
                "`keras_ortho.optimizers.paper_optimizer()`, which uses "
                "`keras_ortho.optimizers.StiefelDescent` for it, or use `ScuRNN`, "
                "which any optimizer can train.",
                stacklevel=2,
            )
        return value


@keras.saving.register_keras_serializable(package="keras_ortho")
class FullUnitary(Parametrization):
    """All unitary matrices, stored directly, as in the full-capacity uRNN.

    The optimizer must keep the matrix unitary, as
    `keras_ortho.optimizers.StiefelDescent` does. The first step of any other one issues
    a warning.

    Args:
        half_gradient: Whether the gradient with respect to the matrix omits what
            reaches it through the imaginary parts of the state. Default: `False`.

    Example:
    >>> FullUnitary().variables(8)[0].shape
    (2, 8, 8)
    """

    is_complex = True
    takes = "a unitary composition"
    sample = staticmethod(random_unitary)

    def __init__(self, half_gradient: bool = False) -> None:
        self.half_gradient = half_gradient

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Returns one variable, the real and the imaginary part of the matrix."""
        shape, make = (2, size, size), initializer or UnitaryComposition()
        kept = KeptUnitary()
        return [
            FreeVariable(
                "recurrent_unitary", shape, make, group="unitary", constraint=kept
            )
        ]

    def matrix(self, *values: Tensor) -> Tensor:
        """Returns the matrix in its real form."""
        (parts,) = values
        rows = ops.concatenate([parts[0], parts[1]], axis=1)
        if not self.half_gradient:
            return block(rows)
        lower = block(ops.stop_gradient(rows))[rows.shape[0] :]
        return ops.concatenate([rows, lower])

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Returns the real and imaginary parts of any unitary matrix."""
        unitary = nearest_unitary(matrix)
        return (np.stack([unitary.real, unitary.imag]),)


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
        shape: tuple[int, ...] = (size * (1 + self.is_complex),) * 2
        if self.heads > 1:
            shape = blocks_shape(self.heads, size // self.heads, self.is_complex)
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
        blocks = [
            real_form(part) if self.is_complex else part
            for part in only_blocks(matrix, self.heads)
        ]
        (variable,) = self.variables(len(matrix))
        return (np.reshape(blocks, variable.shape),)
