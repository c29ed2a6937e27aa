"""A dense layer whose kernel is a submatrix of a parametrized square matrix."""

from typing import Any, Unpack

import keras
import numpy as np
from keras import ops

from keras_ortho import checks
from keras_ortho.backend.types import Tensor
from keras_ortho.keras_internals import call_is_training
from keras_ortho.layers.parametrized_dense import DenseArguments, ParametrizedDense
from keras_ortho.parametrizations.base import check_parametrization
from keras_ortho.parametrizations.free_initializers import check_makes
from keras_ortho.parametrized import ParametrizedMatrix


@keras.saving.register_keras_serializable(package="keras_ortho")
class OrthoDense(ParametrizedDense):
    """Dense layer with a parametrized kernel, such as an orthogonal one.

    The output is `activation(x W + b)`, for any number of inputs `m` and outputs `n`.
    `W` consists of the first `m` rows or the first `n` columns of a square matrix of
    order `p = max(m, n)`. If that matrix is orthogonal, they are orthonormal, and all
    orthonormal rows or columns can be had so.

    Args:
        units: Number of outputs `n`, a positive integer.
        parametrization: A `keras_ortho.parametrizations.Parametrization` of real
            matrices.
        activation: Activation of the output. Default: `None`.
        kernel_initializer: Initializer of the free variables; if the map has an
            inverse, also an array of shape `(p, p)` or any Keras initializer of such a
            matrix. Default: `None`, that of the parametrization.
        **kwargs: As for `keras.layers.Dense`: `use_bias`, `bias_initializer`, the
            regularizers (that of the kernel is for the free variables),
            `bias_constraint`, `name`, `dtype` and so on.

    Output shape:
        `(batch, ..., n)`, of inputs of shape `(batch, ..., m)`, with `m` known.

    Weights:
        The variables of the parametrization for order `p`, under its names; `bias` of
        shape `(n,)`.

    Raises:
        ValueError: If an argument is out of range; in `build`, if the parametrization
            does not support order `p` or the matrix of `kernel_initializer`.

    Example:
    >>> from keras_ortho.parametrizations import ScaledCayley
    >>> layer = OrthoDense(10, ScaledCayley())
    >>> layer(np.zeros((60, 784))).shape
    (60, 10)
    """

    def __init__(
        self,
        units: int,
        parametrization: Any,
        activation: Any = None,
        *,
        kernel_initializer: Any = None,
        **kwargs: Unpack[DenseArguments],
    ) -> None:
        parametrization = check_parametrization(parametrization, real=True)
        super().__init__(
            units, activation, kernel_initializer=kernel_initializer, **kwargs
        )
        self.parametrization = parametrization
        takes = parametrization.takes
        check_makes("kernel_initializer", self.kernel_initializer, takes)

    def build_kernel(self) -> None:
        """Creates the free variables of the square matrix."""
        self._matrix = ParametrizedMatrix(
            self,
            self.parametrization,
            "kernel_initializer",
            self.kernel_initializer,
            max(self._shape),
            lambda variable: self.kernel_regularizer,
        )

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        """Computes the output."""
        if call_is_training(training) and self.trainable:
            self._matrix.begin_training_pass()
        return super().call(inputs)

    def rebase(self) -> None:
        """Moves the base of a `Rebased` parametrization, with the same kernel.

        Raises:
            ValueError: If the layer is not built, or its parametrization has no base.
        """
        checks.check_built(self)
        self._matrix.rebase()

    def kernel_matrix(self) -> Tensor:
        """Returns the kernel `W`, of shape `(m, n)`, in float32 or wider."""
        checks.check_built(self)
        rows, columns = self._shape
        return self._matrix.make()[:rows, :columns]

    def set_square_matrix(self, matrix: Tensor | np.ndarray) -> None:
        """Sets the free variables so that the square matrix equals `matrix`.

        Args:
            matrix: Tensor or array of shape `(p, p)`.

        Raises:
            ValueError: If the layer is not built, or the map cannot make `matrix`.
        """
        checks.check_built(self)
        matrix = ops.convert_to_numpy(matrix)
        checks.check_shape("matrix", matrix, (max(self._shape),) * 2)
        self._matrix.set(matrix)
