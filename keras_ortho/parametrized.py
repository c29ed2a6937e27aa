"""A matrix of a layer, computed from free variables that are weights of the layer."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check, check_fits
from keras_ortho.optimizers.groups import set_group
from keras_ortho.parametrizations.base import FreeVariable, Parametrization


class ParametrizedMatrix:
    """A matrix of a layer, in at least float32, and the weights that it adds for it."""

    def __init__(
        self,
        layer: keras.layers.Layer,
        parametrization: Parametrization,
        argument: str,
        initializer: Any,
        size: int,
        regularizer_of: Callable[[FreeVariable], Any],
        prefix: str = "",
    ) -> None:
        self._parametrization = parametrization
        self._dtype = wide_dtype(layer.variable_dtype)
        self.variables: list[keras.Variable] = []
        parametrization.check(size)
        parts = 1 + parametrization.is_complex
        self._shape = tuple(side * parts for side in parametrization.matrix_shape(size))
        for free in parametrization.start(argument, initializer, size, self._dtype):
            weight = layer.add_weight(
                name=prefix + free.name,
                shape=free.shape,
                initializer=free.initializer,
                trainable=free.trainable,
                dtype=self._dtype if free.exact else free.dtype,
                constraint=free.constraint,
                regularizer=regularizer_of(free) if free.trainable else None,
                autocast=False,
            )
            set_group(weight, free.group)
            self.variables.append(weight)

    def values(self) -> list[Tensor]:
        """Returns the values of the weights that the parametrization takes."""
        return self._parametrization.values(self.variables, self._dtype)

    def make(self) -> Tensor:
        """Computes the matrix."""
        matrix = self._parametrization.matrix(*self.values())
        name = f"{type(self._parametrization).__name__}.matrix"
        dtype = str(getattr(matrix, "dtype", "complex, or no tensor"))
        wanted = "return a real tensor, of a complex matrix its real form"
        check("complex" not in dtype, name, wanted, f"dtype={dtype}")
        check_fits(name, matrix, self._shape, "the units")
        return matrix

    def make_blocks(self) -> Tensor:
        """Computes the diagonal blocks of a matrix that has heads."""
        return self._parametrization.blocks(*self.values())

    def set(self, matrix: np.ndarray) -> None:
        """Sets the weights such that the matrix equals a given one."""
        values = self._parametrization.inverse(matrix)
        for variable, value in zip(self.variables, values, strict=True):
            variable.assign(value)

    def rebase(self) -> None:
        """Moves the base of a `Rebased` parametrization to the current matrix."""
        self._parametrization.rebase(self.variables, self._dtype)

    def begin_training_pass(self) -> None:
        """Lets the parametrization update non-trainable variables, once per pass."""
        self._parametrization.begin_training_pass(self.variables, self._dtype)
