"""Initializers of free variables: what tells them apart, and from those of a matrix."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import keras
import numpy as np
from keras import ops

from keras_ortho import checks
from keras_ortho.backend import eagerly
from keras_ortho.backend.types import Tensor


class FreeInitializer:
    """Marks the initializers that make the free variables of a recurrent matrix.

    A cell calls one with the shape of its variable. Any other initializer it
    calls with `(n, n)`, for a matrix that it takes through the inverse of its
    parametrization.

    `makes` says what those variables are: a cell of another kind refuses the
    initializer. One that does not say is taken by all. `seeds` is how many seeds in a
    row it draws from: another that is to be independent begins beyond them.
    """

    makes: ClassVar[str] = ""
    seeds: ClassVar[int] = 1


class SeedOnly:
    """An initializer of Keras whose only argument is its seed.

    `settings` are Keras's other arguments.
    """

    settings: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, seed: Any = None) -> None:
        super().__init__(**self.settings, seed=seed)  # type: ignore[call-arg]

    def get_config(self) -> dict[str, Any]:
        """Gives the arguments that make an equal initializer."""
        return {"seed": super().get_config()["seed"]}  # type: ignore[misc]


def check_makes(name: str, initializer: Any, wanted: str) -> None:
    """Checks that an initializer of free variables makes those of a parametrization.

    Args:
        name: Name of the argument that gave it.
        initializer: The initializer, of free variables or of a matrix.
        wanted: What the free variables are; `""` takes all.

    Raises:
        ValueError: If it makes others.
    """
    makes = initializer.makes if isinstance(initializer, FreeInitializer) else ""
    if makes and wanted and makes != wanted:
        raise ValueError(
            f"`{name}` must make {wanted}, or a matrix. "
            f"Received: {name}={type(initializer).__name__}, which makes {makes}"
        )


def given_initializer(identifier: Any) -> Any:
    """Finds the initializer that a user of a parametrization has given.

    Args:
        identifier: As for `keras_ortho.initializers.get`, or `None`.

    Returns:
        The initializer, or `None`.
    """
    from keras_ortho import initializers  # Which has those of parametrizations.

    return initializers.get(identifier)


def independent(initializer: Any) -> Any:
    """Makes an initializer with the same settings that draws other values.

    Every call of one of Keras's random initializers gives the same values, unless
    its seed is a `keras.random.SeedGenerator`. Two weights that share an argument
    such as `kernel_initializer` need one each.

    Args:
        initializer: An initializer of Keras or of this package, or a function.

    Returns:
        An initializer with the next seed where it was given an int, with a new one
        where it was given none. The initializer itself where it draws nothing, or
        something new at each call.

    Example:
    >>> independent(keras.initializers.GlorotUniform(seed=1)).get_config()["seed"]
    2
    """
    if not isinstance(initializer, keras.initializers.Initializer):
        return initializer
    config = initializer.get_config()
    seed = config.get("seed")
    if "seed" not in config or not (seed is None or isinstance(seed, int)):
        return initializer
    config["seed"] = None if seed is None else seed + 1
    return type(initializer).from_config(config)


def independents(initializer: Any, count: int) -> list[Any]:
    """Makes several initializers with the same settings that draw other values.

    Args:
        initializer: The first of them.
        count: How many.

    Returns:
        A list of them.
    """
    chain = [initializer]
    while len(chain) < count:
        chain.append(independent(chain[-1]))
    return chain


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


def check_array(argument: str, initializer: Any, shape: tuple[int, ...]) -> None:
    """Checks the shape of an initializer that is an array.

    Keras would repeat a smaller one.

    Args:
        argument: Name of the argument.
        initializer: What `keras_ortho.initializers.get` made of it.
        shape: Shape of the weight.

    Raises:
        ValueError: If it is an array of another shape.

    Example:
    >>> ones = keras.initializers.Constant(np.ones((3, 4)))
    >>> check_array("kernel_initializer", ones, (3, 4))
    """
    if isinstance(initializer, keras.initializers.Constant):
        value = np.asarray(initializer.value)
        if value.ndim:
            checks.check_shape(argument, value, shape)
