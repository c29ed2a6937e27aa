"""A dense layer whose kernel is parametrized by its singular value decomposition."""

from typing import Any, Unpack

import keras
import numpy as np
from keras import ops

from keras_ortho import checks
from keras_ortho.backend.types import Tensor
from keras_ortho.layers.parametrized_dense import DenseArguments, ParametrizedDense
from keras_ortho.parametrizations.free_initializers import (
    FreeInitializer,
    check_makes,
    independent,
    initializers_from_matrix,
)
from keras_ortho.parametrizations.householder import (
    check_invertible,
    check_pair,
    num_reflector_entries,
    unit_length,
)
from keras_ortho.parametrizations.svd import (
    bounded_logits,
    bounded_singular_values,
    svd_inverse,
    svd_matrix,
)


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
        features, rank = self._shape[0], min(self._shape)
        self._reflections = check_pair(self.reflections, rank)
        free = self.spectral_margin is None
        make: Any = self.kernel_initializer
        if isinstance(make, FreeInitializer):
            initial = [
                unit_length(make, features),
                unit_length(independent(make), self.units),
                keras.initializers.Constant(self.spectral_center if free else 0.0),
            ]
        else:
            check_invertible(self._reflections, rank)
            shape, dtype = self._shape, self.factorization_dtype
            initial = initializers_from_matrix(
                "kernel_initializer", make, shape, self._free_variables, 3, dtype
            )
        sizes = map(num_reflector_entries, self._shape, self._reflections)
        values = "kernel_singular_values" if free else "kernel_singular_logits"
        names = ("kernel_left_reflectors", "kernel_right_reflectors", values)
        self._kernel_variables = [
            self.add_weight(
                shape=(size,),
                name=name,
                initializer=initializer,
                regularizer=self.kernel_regularizer if name == values else None,
                autocast=False,  # Multiplied in the precision of the variables.
            )
            for name, size, initializer in zip(
                names, (*sizes, rank), initial, strict=True
            )
        ]

    def _free_variables(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        left, right, values = svd_inverse(matrix)
        if self.spectral_margin is None:
            return left, right, values
        margin, center = self.spectral_margin, self.spectral_center
        return left, right, bounded_logits(values, margin, center, matrix.dtype)

    def kernel_matrix(self) -> Tensor:
        """Returns the kernel `W`, of shape `(m, n)`, in float32 or wider."""
        checks.check_built(self)
        dtype = self.factorization_dtype
        left, right, values = (ops.cast(v, dtype) for v in self._kernel_variables)
        if self.spectral_margin is not None:
            values = bounded_singular_values(
                values, self.spectral_margin, self.spectral_center
            )
        return svd_matrix(left, right, values, self._shape)

    def set_kernel_matrix(self, matrix: Tensor | np.ndarray) -> None:
        """Sets the reflectors and singular values so that `W` equals `matrix`.

        Args:
            matrix: Tensor or array of shape `(m, n)`.

        Raises:
            ValueError: If the layer is not built, or cannot represent `matrix`.
        """
        checks.check_built(self)
        check_invertible(self._reflections, min(self._shape))
        matrix = ops.convert_to_numpy(matrix)
        checks.check_shape("matrix", matrix, self._shape)
        arrays = self._free_variables(matrix)
        for variable, array in zip(self._kernel_variables, arrays, strict=True):
            variable.assign(array)
