"""A unitary matrix that is a variable itself, and that its optimizer keeps unitary."""

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
    """All unitary matrices, each held as it is: the full-capacity uRNN's.

    The one set here that an optimizer has to keep to, as
    `keras_ortho.optimizers.StiefelDescent` does; the first step of another warns.

    Args:
        half_gradient: Whether the gradient leaves out what reaches the matrix through
            the imaginary parts of the state. Default: `False`.

    Example:
    >>> FullUnitary().variables(8)[0].shape
    (2, 8, 8)
    """

    is_complex = True
    takes = "a unitary composition"

    def __init__(self, half_gradient: bool = False) -> None:
        self.half_gradient = half_gradient

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the matrix, its real and its imaginary part."""
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
        """Gives the matrix in its real form."""
        (parts,) = values
        rows = ops.concatenate([parts[0], parts[1]], axis=1)
        if not self.half_gradient:
            return block(rows)
        lower = block(ops.stop_gradient(rows))[rows.shape[0] :]
        return ops.concatenate([rows, lower])

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Takes any unitary matrix as it is."""
        unitary = nearest_unitary(matrix)
        return (np.stack([unitary.real, unitary.imag]),)

    def sample(self, size: int, seed: int | None = None) -> np.ndarray:
        """Draws a unitary matrix uniformly (Haar measure)."""
        return random_unitary(size, seed)
