"""Initializers from the papers, and for the free variables of parametrizations."""

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

# The initializers that users may give by name.
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
    """Finds an initializer: one of this package, or one that Keras knows.

    Args:
        identifier: A name such as `"henaff_skew"`, an array, or any identifier that
            `keras.initializers.get` accepts.

    Returns:
        For a name or a config, a new initializer. For an array, a `Constant` with its
        values, or those of the real form `[[Re W, Im W], [-Im W, Re W]]` if it is
        complex. Otherwise, the initializer itself.

    Raises:
        ValueError: If no such initializer exists.

    Example:
    >>> get("henaff_skew").maxval
    1.5707963267948966
    """
    if isinstance(identifier, str) and identifier in _NAMED:
        return _NAMED[identifier]()
    if ops.is_tensor(identifier) or isinstance(identifier, np.ndarray):
        # Keras would make a function of it, and a config can contain neither
        # functions nor complex numbers.
        array = ops.convert_to_numpy(identifier)
        if np.iscomplexobj(array):
            array = np.block([[array.real, array.imag], [-array.imag, array.real]])
        return keras.initializers.Constant(array)
    return keras.initializers.get(identifier)
