"""Initializers from the papers, and for the free variables of parametrizations."""

from keras_ortho.initializers.fan_in_normal import FanInNormal
from keras_ortho.initializers.forget_bias import ForgetBias
from keras_ortho.initializers.small_uniform import SmallUniform
from keras_ortho.initializers.state_uniform import StateUniform
from keras_ortho.parametrizations.antisymmetric import AntisymmetricNormal
from keras_ortho.parametrizations.eigenvalue_normalized import ScaledRotations
from keras_ortho.parametrizations.free import (
    FreeInitializer,
    check_array,
    get,
    independent,
)
from keras_ortho.parametrizations.phases import UniformPhases
from keras_ortho.parametrizations.reflectors import (
    NormalReflectors,
    UniformReflectors,
)
from keras_ortho.parametrizations.restricted_unitary import UnitaryComposition
from keras_ortho.parametrizations.skew import HenaffSkew

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
