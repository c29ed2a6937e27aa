"""The initializer of the AntisymmetricRNN's input kernel."""

from typing import Any

import keras

from keras_ortho.parametrizations.free import SeedOnly


@keras.saving.register_keras_serializable(package="keras_ortho")
class FanInNormal(SeedOnly, keras.initializers.VarianceScaling):
    """Normal entries with the variance `1 / m`, for `m` inputs, not truncated.

    Args:
        seed: An int or a `keras.random.SeedGenerator`. Default: `None`, a seed
            of its own.

    Example:
    >>> kernel = FanInNormal(seed=0)((96, 256))  # a deviation of 0.1

    Reference:

    - [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), appendix C
    """

    def __init__(self, seed: Any = None) -> None:
        super().__init__(1.0, "fan_in", "untruncated_normal", seed=seed)
