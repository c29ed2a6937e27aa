"""A matrix in factorized form, with singular vectors by the Cayley transform."""

from typing import Any

import keras
import numpy as np

from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_real_square
from keras_ortho.parametrizations.base import FreeVariable
from keras_ortho.parametrizations.cayley import scaled_cayley, scaled_cayley_inverse
from keras_ortho.parametrizations.skew import HenaffSkew, num_entries
from keras_ortho.parametrizations.svd import BoundedSpectrum


@keras.saving.register_keras_serializable(package="keras_ortho")
class FactorizedCayley(BoundedSpectrum):
    """Matrices `L diag(sigma) R^T` with `L` and `R` by the scaled Cayley transform.

    In the paper, the optimizer keeps `L` and `R` orthogonal.

    Args:
        spectral_margin: Largest distance of a singular value from the center, at
            least 0. With 0, the singular values are not trained. Default: 0.1.
        spectral_center: Center of the interval of the singular values and their
            initial value, more than 0. Default: 1.

    Raises:
        ValueError: If an argument is out of range.

    Example:
    >>> FactorizedCayley().distance(np.eye(3))
    0.0

    Reference:
    - [Vorontsov et al., 2017](https://proceedings.mlr.press/v70/vorontsov17a.html)
    """

    takes = "skew entries"

    def __init__(
        self, spectral_margin: float = 0.1, spectral_center: float = 1.0
    ) -> None:
        super().__init__(spectral_margin, spectral_center)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Returns entries and signs of the factors, and logits of singular values."""
        zeros, ones = keras.initializers.Zeros(), keras.initializers.Ones()
        entries, order = (num_entries(size),), (size,)
        return [
            FreeVariable("left_skew", entries, initializer or HenaffSkew()),
            FreeVariable("left_signs", order, ones, trainable=False),
            FreeVariable("right_skew", entries, zeros),
            FreeVariable("right_signs", order, ones, trainable=False),
            FreeVariable("singular_logits", order, zeros),
        ]

    def parts(self, *values: Tensor) -> dict[str, Tensor]:
        """Returns the factors `L` and `R`."""
        left_skew, left_signs, right_skew, right_signs, _ = values
        return {
            "left": scaled_cayley(left_skew, left_signs),
            "right": scaled_cayley(right_skew, right_signs),
        }

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds the variables, if the singular values are in the interval."""
        matrix = np.asarray(matrix)
        left, values, right = np.linalg.svd(check_real_square("matrix", matrix))
        logits = self.singular_logits(values, matrix.dtype)
        return *scaled_cayley_inverse(left), *scaled_cayley_inverse(right.T), logits
