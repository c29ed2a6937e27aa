"""Dense layer with explicit singular values."""

from dataclasses import replace
from typing import Any, Unpack

import keras
import numpy as np
from keras import ops

from keras_ortho import checks
from keras_ortho.backend.types import Tensor
from keras_ortho.layers.dense import DenseArguments, ParametrizedDense
from keras_ortho.parametrizations.base import FreeVariable
from keras_ortho.parametrizations.free_initializers import check_makes
from keras_ortho.parametrizations.householder import householder_product
from keras_ortho.parametrizations.svd import SVD, bounded_singular_values
from keras_ortho.parametrized import ParametrizedMatrix


@keras.saving.register_keras_serializable(package="keras_ortho")
class SVDDense(ParametrizedDense):
    """Dense layer with a kernel `W = L Sigma R^T` of explicit singular values.

    The output is `activation(x W + b)`, for any number of inputs `m` and outputs `n`.
    `L` and `R` are each a product of at most `p = min(m, n)` Householder reflectors;
    `p` of them suffice for every kernel. The `p` singular values are trained freely, or
    kept within a margin. With a small one, deep stacks preserve signals and gradients.

    Args:
        units: Number of outputs `n`, a positive integer.
        reflections: Number of reflectors of `L` and of `R`: an int in `1 .. p` for
            both, or a pair. Default: `None`, all `p`.
        spectral_margin: Largest deviation of the singular values from
            `spectral_center`, at least 0. Default: `None`, no limit.
        spectral_center: Positive float, initial value of the singular values and
            center of their interval. Default: 1.
        activation: Activation of the output. Default: `None`.
        kernel_initializer: Initializer of the reflectors of `L` and, with the next
            seed, of `R`, which are then scaled to length 1. With all `p` reflectors,
            also an array or any Keras initializer that yields a matrix, with singular
            values in their interval. Default: `"uniform_reflectors"`.
        **kwargs: As for `keras.layers.Dense`: `use_bias`, `bias_initializer`, the
            regularizers (that of the kernel is for the singular values or, with a
            margin, their logits, 0 at the center), `bias_constraint`, `name`, `dtype`
            and so on.

    Output shape:
        `(batch, ..., n)`, of inputs of shape `(batch, ..., m)`, with `m` known.

    Weights:
        `kernel_left_reflectors`, packed with the longest first, of shape
        `(m k - k (k - 1) / 2,)` for `k` reflectors; `kernel_right_reflectors`, the same
        with `n` instead of `m`; `kernel_singular_values`, or with a margin
        `kernel_singular_logits`, of shape `(p,)`; `bias` of shape `(n,)`.

    Raises:
        ValueError: If an argument is out of range; in `build`, if there are more than
            `p` reflectors, or the matrix of `kernel_initializer` is impossible.

    Example:
    >>> layer = SVDDense(128, spectral_margin=0.1, activation="relu")
    >>> layer(np.zeros((60, 784))).shape
    (60, 128)

    Reference:
    - [Zhang et al., 2018](https://proceedings.mlr.press/v80/zhang18g.html), sec. 5
    """

    def __init__(
        self,
        units: int,
        reflections: int | tuple[int, int] | None = None,
        spectral_margin: float | None = None,
        spectral_center: float = 1.0,
        activation: Any = None,
        *,
        kernel_initializer: Any = "uniform_reflectors",
        **kwargs: Unpack[DenseArguments],
    ) -> None:
        if spectral_margin is not None:
            spectral_margin = checks.check_number("spectral_margin", spectral_margin)
        center = checks.check_number("spectral_center", spectral_center, positive=True)
        super().__init__(
            units, activation, kernel_initializer=kernel_initializer, **kwargs
        )
        self.reflections: Any = reflections
        if isinstance(reflections, tuple):
            self.reflections = list(reflections)  # As a config stores it.
        self.spectral_margin = spectral_margin
        self.spectral_center = center
        check_makes("kernel_initializer", self.kernel_initializer, "reflectors")

    def build_kernel(self) -> None:
        """Creates the reflectors and the singular values or their logits."""
        margin, center = self.spectral_margin, self.spectral_center
        self._matrix = ParametrizedMatrix(
            self,
            _Factors(self._shape, self.reflections, margin, center),
            "kernel_initializer",
            self.kernel_initializer,
            min(self._shape),
            lambda free: None if "reflectors" in free.name else self.kernel_regularizer,
            "kernel_",
        )

    def set_kernel_matrix(self, matrix: Tensor | np.ndarray) -> None:
        """Sets the reflectors and singular values so that `W` equals `matrix`.

        Args:
            matrix: Tensor or array of shape `(m, n)`.

        Raises:
            ValueError: If the layer is not built, or cannot represent `matrix`.
        """
        checks.check_built(self)
        self._set_matrix(matrix, self._shape)


class _Factors(SVD):
    """The matrices of `SVDDense`: without a margin, all singular values are free."""

    def __init__(
        self, shape: tuple[int, int], reflections: Any, margin: Any, center: float
    ) -> None:
        super().__init__(reflections, margin or 0.0, center)
        self.shape = shape
        self.is_free = margin is None

    def matrix_shape(self, size: int) -> tuple[int, int]:
        return self.shape

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        *sides, values = super().variables(size, initializer)
        if self.is_free:
            center = keras.initializers.Constant(self.spectral_center)
            values = replace(values, name="singular_values", initializer=center)
        return [replace(each, group="others") for each in (*sides, values)]

    def matrix(self, *values: Tensor) -> Tensor:
        left, right, sigma = values
        if not self.is_free:
            margin, center = self.spectral_margin, self.spectral_center
            sigma = bounded_singular_values(sigma, margin, center)
        left, right = (
            householder_product(reflectors, size, min(self.shape))
            for reflectors, size in zip((left, right), self.shape, strict=True)
        )
        return ops.matmul(left * sigma, ops.transpose(right))

    def singular_logits(self, values: np.ndarray, dtype: Any) -> np.ndarray:
        return values if self.is_free else super().singular_logits(values, dtype)
