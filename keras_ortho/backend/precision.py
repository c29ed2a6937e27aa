"""The precision of what must not be computed in fewer bits than float32 has."""

from typing import Any

import keras
from keras import ops

from keras_ortho.backend.types import Tensor


def wide_dtype(dtype: Any) -> str:
    """Finds the dtype to factorize matrices and to add up many numbers in.

    Args:
        dtype: A floating dtype, or its name; `None` is not float64.

    Returns:
        `"float64"` for that, `"float32"` for all others.

    Example:
    >>> wide_dtype("bfloat16")
    'float32'
    """
    double = dtype is not None and keras.backend.standardize_dtype(dtype) == "float64"
    return "float64" if double else "float32"


def wide_tensor(name: str, value: Tensor) -> Tensor:
    """Converts an argument to a tensor of a precision that can be factorized.

    Args:
        name: Name of the argument.
        value: Its value: a tensor, an array, or lists of floats.

    Returns:
        The tensor.

    Raises:
        ValueError: If its dtype is neither float32 nor float64.

    Example:
    >>> wide_tensor("entries", [1.0, 2.0])
    [1, 2]
    """
    tensor = ops.convert_to_tensor(value)
    dtype = keras.backend.standardize_dtype(tensor.dtype)
    if dtype not in ("float32", "float64"):
        raise ValueError(
            f"`{name}` must be of float32 or float64. Received: {name}.dtype={dtype}"
        )
    return tensor
