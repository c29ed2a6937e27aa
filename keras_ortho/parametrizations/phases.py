"""Initializer for angles and phases."""

import math
from typing import Any

import keras

from keras_ortho.checks import check_bounds
from keras_ortho.parametrizations.free import FreeInitializer


@keras.saving.register_keras_serializable(package="keras_ortho")
class UniformPhases(FreeInitializer, keras.initializers.RandomUniform):
    """Initializer for angles and phases, uniform on `(-pi, pi)` by default.

    Args:
        minval: Lower bound, in radians. Default: -pi.
        maxval: Upper bound, in radians. Default: pi.
        seed: Integer or `keras.random.SeedGenerator`. Default: `None`, a random seed.

    Raises:
        ValueError: If a bound is not a finite number, or `minval` exceeds `maxval`.

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
