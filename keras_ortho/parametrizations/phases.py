"""The initializer of angles and phases."""

import math
from typing import Any

import keras

from keras_ortho.checks import check_bounds
from keras_ortho.parametrizations.free import FreeInitializer


@keras.saving.register_keras_serializable(package="keras_ortho")
class UniformPhases(FreeInitializer, keras.initializers.RandomUniform):
    """Uniform on `(-pi, pi)`: angles and phases all around the circle.

    Args:
        minval: Lower bound, in radians. Default: -pi.
        maxval: Upper bound. Default: pi.
        seed: Int or `keras.random.SeedGenerator`. Default: `None`, one of its own.

    Raises:
        ValueError: If a bound is not a finite number, or the lower is the larger one.

    Example:
    >>> angles = UniformPhases(seed=0)((1, 511))

    Reference:

    - [Jing et al., 2017](https://proceedings.mlr.press/v70/jing17a.html)
    """

    makes = "phases"

    def __init__(
        self, minval: float = -math.pi, maxval: float = math.pi, seed: Any = None
    ) -> None:
        minval, maxval = check_bounds(minval, maxval)
        super().__init__(minval=minval, maxval=maxval, seed=seed)
