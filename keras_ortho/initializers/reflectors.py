"""Initializers of Householder reflectors, and of oRNN's initial state."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.initializers.free import FreeInitializer
from keras_ortho.parametrizations.reflectors import unit_reflectors


@keras.saving.register_keras_serializable(package="keras_ortho")
class NormalReflectors(FreeInitializer, keras.initializers.RandomNormal):
    """Reflectors in random directions, every direction as likely: oRNN's.

    The entries are standard normal. A cell scales each reflector to the length 1.

    Args:
        seed: An int or a `keras.random.SeedGenerator`. Default: `None`, a seed
            of its own.

    Example:
    >>> reflectors = NormalReflectors(seed=0)((3976,))

    Reference:

    - [Mhammedi et al., 2017](https://proceedings.mlr.press/v70/mhammedi17a.html)
    """

    makes = "reflectors"

    def __init__(self, seed: Any = None) -> None:
        super().__init__(mean=0.0, stddev=1.0, seed=seed)

    def get_config(self) -> dict[str, Any]:
        """Gives the arguments that make an equal initializer.

        Returns:
            A dictionary that JSON can hold.
        """
        return {"seed": super().get_config()["seed"]}


@keras.saving.register_keras_serializable(package="keras_ortho")
class UniformReflectors(FreeInitializer, keras.initializers.RandomUniform):
    """Reflectors with uniform entries, as the code of svdRNN's authors draws them.

    The entries are uniform on (-1, 1). A layer scales each reflector to the length 1.

    Args:
        seed: An int or a `keras.random.SeedGenerator`. Default: `None`, a seed
            of its own.

    Example:
    >>> reflectors = UniformReflectors(seed=0)((3976,))

    Reference:

    - [Zhang et al., 2018](https://proceedings.mlr.press/v80/zhang18g.html)
    """

    makes = "reflectors"

    def __init__(self, seed: Any = None) -> None:
        super().__init__(minval=-1.0, maxval=1.0, seed=seed)

    def get_config(self) -> dict[str, Any]:
        """Gives the arguments that make an equal initializer.

        Returns:
            A dictionary that JSON can hold.
        """
        return {"seed": super().get_config()["seed"]}


@keras.saving.register_keras_serializable(package="keras_ortho")
class StateUniform(keras.initializers.VarianceScaling):
    """Uniform on `+-sqrt(3 / (2 n))` for a vector of `n`: oRNN's initial state.

    Args:
        seed: An int or a `keras.random.SeedGenerator`. Default: `None`, a seed
            of its own.

    Example:
    >>> state = StateUniform(seed=0)((128,))

    Reference:

    - [Mhammedi et al., 2017](https://proceedings.mlr.press/v70/mhammedi17a.html)
    """

    def __init__(self, seed: Any = None) -> None:
        super().__init__(scale=0.5, mode="fan_in", distribution="uniform", seed=seed)

    def get_config(self) -> dict[str, Any]:
        """Gives the arguments that make an equal initializer.

        Returns:
            A dictionary that JSON can hold.
        """
        return {"seed": super().get_config()["seed"]}


def unit_length(initializer: Any, size: int) -> Callable[..., Tensor]:
    """Makes an initializer of reflectors of the length 1.

    The matrix does not depend on their length, but the steps of an optimizer do.

    Args:
        initializer: Initializer of packed reflectors.
        size: Number of coordinates of the longest.

    Returns:
        An initializer that gives those of the other, scaled.

    Example:
    >>> reflectors = unit_length(NormalReflectors(seed=0), 256)((3976,), "float32")
    """

    def initialize(shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        values = initializer(shape, dtype=dtype)
        scaled = unit_reflectors(ops.cast(values, wide_dtype(dtype)), size)
        return ops.cast(scaled, values.dtype)

    return initialize
