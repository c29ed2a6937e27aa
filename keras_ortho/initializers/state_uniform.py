"""Initializer for the initial state of oRNN."""

from collections.abc import Mapping
from typing import Any, ClassVar

import keras

from keras_ortho.parametrizations.free import SeedOnly


@keras.saving.register_keras_serializable(package="keras_ortho")
class StateUniform(SeedOnly, keras.initializers.VarianceScaling):
    """Uniform initializer within `+-sqrt(3 / (2 n))`, for the initial state of oRNN.

    Args:
        seed: Integer or `keras.random.SeedGenerator`. Default: `None`, a random seed.

    Example:
    >>> state = StateUniform(seed=0)((128,))

    Reference:

    - [Mhammedi et al., 2017](https://proceedings.mlr.press/v70/mhammedi17a.html)
    """

    settings: ClassVar[Mapping[str, Any]] = {
        "scale": 0.5,
        "mode": "fan_in",
        "distribution": "uniform",
    }
