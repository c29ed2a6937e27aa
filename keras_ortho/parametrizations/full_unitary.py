"""A unitary matrix that is itself a variable, kept unitary by its optimizer."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.complex_rows import block
from keras_ortho.parametrizations.kept_unitary import KeptUnitary
from keras_ortho.parametrizations.orthogonality import nearest_unitary, random_unitary
from keras_ortho.parametrizations.restricted_unitary import UnitaryComposition


@keras.saving.register_keras_serializable(package="keras_ortho")
class FullUnitary(Parametrization):
    """All unitary matrices, stored directly, as in the full-capacity uRNN.

    Unlike the other parametrizations, this one needs an optimizer that keeps the matrix
    unitary, such as `keras_ortho.optimizers.StiefelDescent`. The first step of any
    other optimizer issues a warning.

    Args:
        half_gradient: Whether the gradient with respect to the matrix omits what
            reaches it through the imaginary parts of the state. Default: `False`.

    Example:
    >>> FullUnitary().variables(8)[0].shape
    (2, 8, 8)
    """

    is_complex = True
    takes = "a unitary composition"

    def __init__(self, half_gradient: bool = False) -> None:
        self.half_gradient = half_gradient

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Returns one variable, the real and the imaginary part of the matrix."""
        return [
            FreeVariable(
                "recurrent_unitary",
                (2, size, size),
                initializer or UnitaryComposition(),
                group="unitary",
                constraint=KeptUnitary(),
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

    def sample(self, size: int, seed: int | None = None) -> np.ndarray:
        """Draws a unitary matrix uniformly (Haar measure)."""
        return random_unitary(size, seed)
