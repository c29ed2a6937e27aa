"""Initializers of the papers, and of the free variables of a parametrization."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.initializers.free import FreeInitializer
from keras_ortho.initializers.skew import HenaffSkew
from keras_ortho.initializers.small_uniform import SmallUniform

__all__ = ["FreeInitializer", "HenaffSkew", "SmallUniform", "get"]

# By the name that users give.
_NAMED = {
    "henaff_skew": HenaffSkew,
    "small_uniform": SmallUniform,
}


def get(identifier: Any) -> Any:
    """Finds an initializer by its name, also the papers'.

    Args:
        identifier: `"henaff_skew"`, `"small_uniform"`, an array, or anything
            that `keras.initializers.get` takes.

    Returns:
        A new initializer for a name or a config, one that gives its values for
        an array, otherwise the initializer itself.

    Raises:
        ValueError: If there is none.

    Example:
    >>> get("henaff_skew").maxval
    1.5707963267948966
    """
    if isinstance(identifier, str) and identifier in _NAMED:
        return _NAMED[identifier]()
    if ops.is_tensor(identifier) or isinstance(identifier, np.ndarray):
        # Keras would make a function of it, which no config can hold.
        return keras.initializers.Constant(ops.convert_to_numpy(identifier))
    return keras.initializers.get(identifier)
