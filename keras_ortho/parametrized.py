"""A matrix of a layer, computed from free variables that are weights of the layer."""

from collections.abc import Callable, Iterable
from typing import Any

import keras
import numpy as np

from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_fits
from keras_ortho.optimizers.groups import set_group
from keras_ortho.parametrizations.base import FreeVariable, Parametrization


class ParametrizedMatrix:
    """A square matrix of a layer, and the weights that it is computed from.

    Creating an instance adds the weights to the layer. The matrix has the dtype of the
    weights, and at least float32, regardless of the compute dtype of the layer.

    Attributes:
        variables: The weights, in the order of `Parametrization.variables`.
    """

    def __init__(
        self,
        layer: keras.layers.Layer,
        parametrization: Parametrization,
        argument: str,
        size: int,
        regularizer_of: Callable[[FreeVariable], Any],
    ) -> None:
        self._parametrization = parametrization
        self._dtype = wide_dtype(layer.variable_dtype)
        self.variables: list[keras.Variable] = []
        parametrization.check(size)
        rows = 2 * size if parametrization.is_complex else size
        self._shape = rows, rows
        initializer = getattr(layer, argument)
        given = parametrization.start(argument, initializer, size, self._dtype)
        if not isinstance(given, Iterable):
            raise ValueError(
                f"`{type(parametrization).__name__}.variables` must return a list. "
                f"Received: {given}"
            )
        for free in given:
            weight = layer.add_weight(
                regularizer=regularizer_of(free) if free.trainable else None,
                autocast=False,
                **free.weight_arguments(self._dtype),
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
        dtype = getattr(matrix, "dtype", None)
        if dtype is None or "complex" in str(dtype):
            raise ValueError(
                f"`{name}` must return a real tensor, of a complex matrix its real "
                f"form. Received: {matrix if dtype is None else dtype}"
            )
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
