"""The initializer of oRNN's initial state."""

from collections.abc import Mapping
from typing import Any, ClassVar

import keras

from keras_ortho.parametrizations.free import SeedOnly


@keras.saving.register_keras_serializable(package="keras_ortho")
class StateUniform(SeedOnly, keras.initializers.VarianceScaling):
    """Uniform on `+-sqrt(3 / (2 n))` for a vector of `n`: oRNN's initial state.

    Args:
        seed: Int or `keras.random.SeedGenerator`. Default: `None`, one of its own.

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
