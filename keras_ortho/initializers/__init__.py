"""Initializers of the papers, and of the free variables of a parametrization."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.initializers.fan_in_normal import FanInNormal
from keras_ortho.initializers.forget_bias import ForgetBias
from keras_ortho.initializers.small_uniform import SmallUniform
from keras_ortho.initializers.state_uniform import StateUniform
from keras_ortho.parametrizations.antisymmetric import AntisymmetricNormal
from keras_ortho.parametrizations.eigenvalue_normalized import ScaledRotations
from keras_ortho.parametrizations.free import (
    FreeInitializer,
    check_array,
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

# By the name that users give.
_NAMED = {
    "antisymmetric_normal": AntisymmetricNormal,
    "fan_in_normal": FanInNormal,
    "forget_bias": ForgetBias,
    "henaff_skew": HenaffSkew,
    "normal_reflectors": NormalReflectors,
    "scaled_rotations": ScaledRotations,
    "small_uniform": SmallUniform,
    "state_uniform": StateUniform,
    "uniform_phases": UniformPhases,
    "uniform_reflectors": UniformReflectors,
    "unitary_composition": UnitaryComposition,
}


def get(identifier: Any) -> Any:
    """Finds an initializer by its name, also the papers'.

    Args:
        identifier: A name such as `"henaff_skew"`, an array, or anything that
            `keras.initializers.get` takes.

    Returns:
        A new initializer for a name or a config, one that gives its values for
        an array, of a complex matrix the real `[[Re W, Im W], [-Im W, Re W]]`,
        otherwise the initializer itself.

    Raises:
        ValueError: If there is none.

    Example:
    >>> get("henaff_skew").maxval
    1.5707963267948966
    """
    if isinstance(identifier, str) and identifier in _NAMED:
        return _NAMED[identifier]()
    if ops.is_tensor(identifier) or isinstance(identifier, np.ndarray):
        # Keras would make a function of it, which no config can hold; nor can one
        # hold complex numbers.
        array = ops.convert_to_numpy(identifier)
        if np.iscomplexobj(array):
            array = np.block([[array.real, array.imag], [-array.imag, array.real]])
        return keras.initializers.Constant(array)
    return keras.initializers.get(identifier)
