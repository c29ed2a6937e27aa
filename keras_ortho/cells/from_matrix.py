"""Initializers of free variables from one of the matrix that they make."""

import functools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho import checks
from keras_ortho.backend import eagerly
from keras_ortho.backend.types import Tensor


def initializers_from_matrix(
    name: str,
    initializer: Any,
    shape: tuple[int, int],
    inverse: Callable[[np.ndarray], tuple[np.ndarray, ...]],
    count: int,
    dtype: str,
    check_shape: bool = True,
) -> list[Callable[..., Tensor]]:
    """Splits an initializer of a matrix into one for each free variable.

    Args:
        name: Name of the argument that gave it.
        initializer: The initializer.
        shape: Shape of the matrix.
        inverse: From an array of that shape to the values of the free variables.
        count: How many variables it gives.
        dtype: Dtype to make the matrix in, where it is not given as an array.
        check_shape: Whether an array must have that shape. Default: `True`.

    Returns:
        A list of initializers.

    Raises:
        ValueError: If the initializer is an array of another shape. The initializers
            raise it, if the layer cannot have the matrix.
    """
    given = None
    if isinstance(initializer, keras.initializers.Constant):
        given = np.asarray(initializer.value)
        if check_shape:
            checks.check_shape(name, given, shape)

    @functools.cache  # A random one must be asked once for all variables.
    def values() -> tuple[np.ndarray, ...]:
        matrix = given
        if matrix is None:
            # Inverses branch on the values of the matrix, so there must be values,
            # also where the layer is built while a function is traced.
            with eagerly():
                matrix = ops.convert_to_numpy(initializer(shape, dtype=dtype))
        try:
            return inverse(matrix)
        except ValueError as error:
            raise ValueError(
                f"`{name}` gives no matrix that the layer can have: {error}"
            ) from error

    return [
        lambda shape, dtype=None, index=index: ops.cast(values()[index], dtype)
        for index in range(count)
    ]
