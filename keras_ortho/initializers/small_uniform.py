"""Initializer for input kernels in several of the papers."""

from typing import Any

import keras

from keras_ortho.checks import check_bounds


@keras.saving.register_keras_serializable(package="keras_ortho")
class SmallUniform(keras.initializers.RandomUniform):
    """Uniform initializer on `(-0.01, 0.01)`, as for the input kernels of the papers.

    Args:
        minval: Lower bound. Default: -0.01.
        maxval: Upper bound. Default: 0.01.
        seed: Integer or `keras.random.SeedGenerator`. Default: `None`, a random seed.

    Raises:
        ValueError: If a bound is not a finite number, or `minval` exceeds `maxval`.

    Example:
    >>> kernel = SmallUniform(seed=0)((1, 170))
    """

    def __init__(
        self, minval: float = -0.01, maxval: float = 0.01, seed: Any = None
    ) -> None:
        minval, maxval = check_bounds(minval, maxval)
        super().__init__(minval=minval, maxval=maxval, seed=seed)
