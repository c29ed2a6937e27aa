"""Initializer for the input kernel of the AntisymmetricRNN."""

from collections.abc import Mapping
from typing import Any, ClassVar

import keras

from keras_ortho.parametrizations.free import SeedOnly


@keras.saving.register_keras_serializable(package="keras_ortho")
class FanInNormal(SeedOnly, keras.initializers.VarianceScaling):
    """Normal initializer with the variance `1 / m` for `m` inputs, not truncated.

    Args:
        seed: Integer or `keras.random.SeedGenerator`. Default: `None`, a random seed.

    Example:
    >>> kernel = FanInNormal(seed=0)((96, 256))  # a deviation of 0.1

    Reference:

    - [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), appendix C
    """

    settings: ClassVar[Mapping[str, Any]] = {
        "scale": 1.0,
        "mode": "fan_in",
        "distribution": "untruncated_normal",
    }
