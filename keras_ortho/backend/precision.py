"""The dtypes of computations that need at least float32."""

from typing import Any

import keras
from keras import ops

from keras_ortho.backend.types import Tensor


def wide_dtype(dtype: Any) -> str:
    """Returns the dtype in which to factorize matrices and to sum many numbers."""
    double = dtype is not None and keras.backend.standardize_dtype(dtype) == "float64"
    return "float64" if double else "float32"


def wide_tensor(name: str, value: Tensor) -> Tensor:
    """Converts an argument to a tensor, and checks that its dtype can be factorized."""
    tensor = ops.convert_to_tensor(value)
    dtype = keras.backend.standardize_dtype(tensor.dtype)
    if dtype not in ("float32", "float64"):
        raise ValueError(
            f"`{name}` must be of float32 or float64. Received: {name}.dtype={dtype}"
        )
    return tensor
