"""The precision of what must not be computed in fewer bits than float32 has."""

from typing import Any

import keras


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
