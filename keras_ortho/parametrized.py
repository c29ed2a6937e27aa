"""A matrix of a layer, made from free variables that are weights of the layer."""

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
    """A square matrix of a layer, and the weights that it is made from.

    It adds the weights to the layer. The matrix is made in their dtype, and at least in
    float32, whatever the layer computes in.

    Args:
        layer: The layer, within its `build`.
        parametrization: The map from the weights to the matrix.
        argument: Name of the layer's argument, and attribute, that says how they start.
        size: Order `n` of the matrix, of complex units half of its rows.
        regularizer_of: Chooses the regularizer of a trained variable.

    Attributes:
        variables: The weights, in the order of `Parametrization.variables`.

    Raises:
        ValueError: If there is no such matrix.

    Example:
    >>> from keras_ortho.parametrizations import ScaledCayley
    >>> layer = keras.layers.Layer()
    >>> layer.initializer = None
    >>> rotation = ParametrizedMatrix(
    ...     layer, ScaledCayley(), "initializer", 4, lambda variable: None
    ... )
    >>> rotation.make().shape, [v.name for v in layer.trainable_weights]
    ((4, 4), ['recurrent_skew'])
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
                f"`{type(parametrization).__name__}.variables` must give a list. "
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
        """Gives the values of the weights as the parametrization takes them."""
        return self._parametrization.values(self.variables, self._dtype)

    def make(self) -> Tensor:
        """Makes the matrix.

        Raises:
            ValueError: If what the parametrization makes is of another shape.
        """
        matrix = self._parametrization.matrix(*self.values())
        name = f"{type(self._parametrization).__name__}.matrix"
        check_fits(name, matrix, self._shape, "the units")
        return matrix

    def make_blocks(self) -> Tensor:
        """Makes the blocks of a matrix that has heads."""
        return self._parametrization.blocks(*self.values())

    def set(self, matrix: np.ndarray) -> None:
        """Sets the weights so that the matrix is a given one.

        Args:
            matrix: Array of shape `(n, n)`.

        Raises:
            ValueError: If the parametrization does not make it, or has no inverse.
        """
        values = self._parametrization.inverse(matrix)
        for variable, value in zip(self.variables, values, strict=True):
            variable.assign(value)

    def rebase(self) -> None:
        """Moves the base of a `Rebased` parametrization to the matrix.

        Raises:
            ValueError: If there is no base.
        """
        self._parametrization.rebase(self.variables, self._dtype)

    def begin_training_pass(self) -> None:
        """Lets the parametrization change what is not trained, once a training pass."""
        self._parametrization.begin_training_pass(self.variables, self._dtype)
