"""Initializers from the papers, and for the free variables of parametrizations."""

from collections.abc import Mapping
from typing import Any, ClassVar

import keras
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_bounds, check_finite
from keras_ortho.parametrizations.eigenvalue_normalized import ScaledRotations
from keras_ortho.parametrizations.free_initializers import (
    FreeInitializer,
    SeedOnly,
    UniformPhases,
    check_array,
    get,
    independent,
)
from keras_ortho.parametrizations.householder import (
    NormalReflectors,
    UniformReflectors,
)
from keras_ortho.parametrizations.skew import AntisymmetricNormal, HenaffSkew
from keras_ortho.parametrizations.unitary import UnitaryComposition

__all__ = [
    "AntisymmetricNormal",
    "FanInNormal",
    "ForgetBias",
    "FreeInitializer",
    "HenaffSkew",
    "NormalReflectors",
    "ScaledRotations",
    "SmallUniform",
    "StateUniform",
    "UniformPhases",
    "UniformReflectors",
    "UnitaryComposition",
    "check_array",
    "get",
    "independent",
]


@keras.saving.register_keras_serializable(package="keras_ortho")
class FanInNormal(SeedOnly, keras.initializers.VarianceScaling):
    """Normal initializer with the variance `1 / m` for `m` inputs, not truncated.

    Args:
        seed: Integer or `keras.random.SeedGenerator`. Default: `None`, a random seed.

    Example:
    >>> kernel = FanInNormal(seed=0)((96, 256))  # a deviation of 0.1

    Reference:
    [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), appendix C
    """

    settings: ClassVar[Mapping[str, Any]] = {
        "scale": 1.0,
        "mode": "fan_in",
        "distribution": "untruncated_normal",
    }


@keras.saving.register_keras_serializable(package="keras_ortho")
class ForgetBias(keras.initializers.Initializer):
    """Bias initializer for an LSTM: one value for the forget gates, zero elsewhere.

    For `keras.layers.LSTM(..., unit_forget_bias=False)`. At each step, the gate keeps
    `sigmoid(value)` of the cell state at first, 0.98 at 4 and 0.02 at -4.

    Args:
        value: Value for the forget gates, finite. Default: 1.

    Raises:
        ValueError: If the value is not finite.

    Example:
    >>> ForgetBias(-4.0)((8,))
    [0, 0, -4, -4, 0, 0, 0, 0]
    """

    def __init__(self, value: float = 1.0) -> None:
        self.value = check_finite("value", value)

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        """Returns the biases of input gates, forget gates, cells and output gates."""
        gate = (shape[0] // 4,)
        zeros = ops.zeros(gate, dtype=dtype)
        forget = ops.full(gate, self.value, dtype=zeros.dtype)
        return ops.concatenate([zeros, forget, zeros, zeros])

    def get_config(self) -> dict[str, Any]:
        """Returns the config of the initializer."""
        return {"value": self.value}


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


@keras.saving.register_keras_serializable(package="keras_ortho")
class StateUniform(SeedOnly, keras.initializers.VarianceScaling):
    """Uniform initializer within `+-sqrt(3 / (2 n))`, for the initial state of oRNN.

    Args:
        seed: Integer or `keras.random.SeedGenerator`. Default: `None`, a random seed.

    Example:
    >>> state = StateUniform(seed=0)((128,))

    Reference:
    [Mhammedi et al., 2017](https://proceedings.mlr.press/v70/mhammedi17a.html)
    """

    settings: ClassVar[Mapping[str, Any]] = {
        "scale": 0.5,
        "mode": "fan_in",
        "distribution": "uniform",
    }
