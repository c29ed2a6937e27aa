"""Matrices in the form of their singular value decomposition, `W = L Sigma R^T`."""

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho import checks
from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.arithmetic import rounding_tolerance
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.cayley import scaled_cayley, scaled_cayley_inverse
from keras_ortho.parametrizations.free_initializers import independent
from keras_ortho.parametrizations.householder import (
    UniformReflectors,
    check_invertible,
    check_pair,
    frame_reflectors,
    householder_product,
    num_reflector_entries,
    unit_length,
)
from keras_ortho.parametrizations.skew import HenaffSkew, num_entries


def bounded_singular_values(logits: Tensor, margin: float, center: float) -> Tensor:
    """Computes singular values (up to sign) `center + 2 margin (sigmoid(s) - 1/2)`."""
    logits = ops.convert_to_tensor(logits)
    return center + margin * (2.0 * ops.sigmoid(logits) - 1.0)


def spectral_deviation(matrix: Tensor, center: float = 1.0) -> float:
    """Computes `max |sigma_i - center|`, or NaN if an entry is not finite."""
    matrix = _float64(ops.convert_to_numpy(matrix))
    if not np.isfinite(matrix).all():
        return math.nan
    return float(np.abs(np.linalg.svd(matrix, compute_uv=False) - center).max())


def _float64(matrix: np.ndarray) -> np.ndarray:
    matrix = np.asarray(matrix)
    fits = matrix.ndim == 2 and matrix.size
    checks.check(fits, "matrix", "be a nonempty matrix", f"matrix.shape={matrix.shape}")
    checks.check_real("matrix", matrix)
    return matrix.astype("float64")


class BoundedSpectrum(Parametrization):
    """Base class of matrices `L diag(sigma) R^T`, of bounded singular values."""

    def __init__(self, spectral_margin: float, spectral_center: float) -> None:
        check = checks.check_number
        self.spectral_margin = check("spectral_margin", spectral_margin)
        self.spectral_center = check("spectral_center", spectral_center, positive=True)

    def matrix(self, *values: Tensor) -> Tensor:
        """Computes `W = L diag(sigma) R^T`."""
        factors, logits = self.parts(*values), values[-1]
        scaled = factors["left"] * bounded_singular_values(
            logits, self.spectral_margin, self.spectral_center
        )
        return ops.matmul(scaled, ops.transpose(factors["right"]))

    def singular_logits(self, values: np.ndarray, dtype: Any) -> np.ndarray:
        """Computes the logits of singular values: inverts `bounded_singular_values`."""
        margin, center = self.spectral_margin, self.spectral_center
        tolerance = rounding_tolerance(len(values), dtype) * (center + margin)
        distance = values - center
        fits = np.all(np.abs(distance) <= margin + tolerance)
        wanted = f"have singular values between {center - margin} and {center + margin}"
        received = f"between {values.min()} and {values.max()}"
        checks.check(fits, "matrix", wanted, received)
        if margin == 0:
            return np.zeros(len(values))
        # With x = distance / margin, the logit is log((1 + x) / (1 - x)).
        limit = 1 - 2 * np.finfo("float64").eps
        return 2 * np.arctanh(np.clip(distance / margin, -limit, limit))

    def distance(self, matrix: np.ndarray) -> float:
        """Measures how far the singular values lie outside the interval."""
        checks.check_square("matrix", matrix)
        deviation = spectral_deviation(matrix, self.spectral_center)
        # Python's `max` would turn NaN into 0.
        return float(np.maximum(0.0, deviation - self.spectral_margin))


@keras.saving.register_keras_serializable(package="keras_ortho")
class SVD(BoundedSpectrum):
    """Matrices `L diag(sigma) R^T` with Householder reflectors, as in svdRNN.

    Args:
        reflections: Number of reflectors of `L` and of `R`, an int in `1 .. n` for
            both, or a pair. Default: `None`, `n` each, which reach every matrix whose
            singular values lie in the interval.
        spectral_margin: Largest distance of the singular values from the center, at
            least 0; with 0 they are fixed at the center. Default: 0.01.
        spectral_center: Center of the interval of the singular values, and their
            initial value, positive. Default: 1.

    Raises:
        ValueError: If an argument is out of range.

    Example:
    >>> SVD(16).distance(np.eye(128))
    0.0

    Reference:
    [Zhang et al., 2018](https://proceedings.mlr.press/v80/zhang18g.html), equation 17
    """

    takes = "reflectors"

    def __init__(
        self,
        reflections: int | tuple[int, int] | None = None,
        spectral_margin: float = 0.01,
        spectral_center: float = 1.0,
    ) -> None:
        super().__init__(spectral_margin, spectral_center)
        # A config holds pairs as lists.
        self.reflections = (
            list(reflections) if isinstance(reflections, list | tuple) else reflections
        )

    def check(self, size: int) -> None:
        """Checks the numbers of reflectors."""
        check_pair(self.reflections, size)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the reflectors of `L` and `R` and the logits of the singular values."""
        shape, make = self.matrix_shape(size), initializer or UniformReflectors()
        makes = map(unit_length, (make, independent(make)), shape)
        sizes = map(num_reflector_entries, shape, check_pair(self.reflections, size))
        names = "left_reflectors", "right_reflectors"
        rows = zip(names, sizes, makes, strict=True)
        return [
            *(FreeVariable(name, (count,), make) for name, count, make in rows),
            FreeVariable("singular_logits", (size,), keras.initializers.Zeros()),
        ]

    def parts(self, *values: Tensor) -> dict[str, Tensor]:
        """Returns the factors `L` and `R`."""
        left, right, logits = values
        size = logits.shape[0]
        return {
            "left": householder_product(left, size),
            "right": householder_product(right, size),
        }

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds the reflectors and logits, if each factor has `n` reflectors."""
        matrix = np.asarray(matrix)
        exact = _float64(matrix)
        checks.check_all_finite("matrix", exact)
        left, values, right = np.linalg.svd(exact, full_matrices=False)
        check_invertible(check_pair(self.reflections, len(values)), len(values))
        factors = frame_reflectors(left), frame_reflectors(right.T)
        return *factors, self.singular_logits(values, matrix.dtype)


@keras.saving.register_keras_serializable(package="keras_ortho")
class FactorizedCayley(BoundedSpectrum):
    """Matrices `L diag(sigma) R^T` with `L` and `R` by the scaled Cayley transform.

    In the paper, the optimizer keeps `L` and `R` orthogonal.

    Args:
        spectral_margin: Largest distance of a singular value from the center, as in
            `SVD`.
            Default: 0.1.
        spectral_center: Center of the interval and initial value. Default: 1.

    Raises:
        ValueError: If an argument is out of range.

    Example:
    >>> FactorizedCayley().distance(np.eye(3))
    0.0

    Reference:
    [Vorontsov et al., 2017](https://proceedings.mlr.press/v70/vorontsov17a.html)
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
        left = scaled_cayley(*values[:2])
        return {"left": left, "right": scaled_cayley(*values[2:4])}

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds the variables, if the singular values are in the interval."""
        matrix = np.asarray(matrix)
        left, values, right = np.linalg.svd(checks.check_real_square("matrix", matrix))
        logits = self.singular_logits(values, matrix.dtype)
        return *scaled_cayley_inverse(left), *scaled_cayley_inverse(right.T), logits
