"""The initializer of the papers' input kernels."""

from typing import Any

import keras

from keras_ortho.checks import check_bounds


@keras.saving.register_keras_serializable(package="keras_ortho")
class SmallUniform(keras.initializers.RandomUniform):
    """Uniform on `(-0.01, 0.01)`: the papers' input kernels.

    Args:
        minval: Lower bound. Default: -0.01.
        maxval: Upper bound. Default: 0.01.
        seed: Int or `keras.random.SeedGenerator`. Default: `None`, one of its own.

    Raises:
        ValueError: If a bound is not a finite number, or the lower is the larger one.

    Example:
    >>> kernel = SmallUniform(seed=0)((1, 170))
    """

    def __init__(
        self, minval: float = -0.01, maxval: float = 0.01, seed: Any = None
    ) -> None:
        minval, maxval = check_bounds(minval, maxval)
        super().__init__(minval=minval, maxval=maxval, seed=seed)
