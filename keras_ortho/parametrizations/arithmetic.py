"""Norms and a division that do not fail at zero, and what rounding may do."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend.types import Tensor


def frobenius_norm(tensor: Tensor) -> Tensor:
    """Computes the root of the sum of squares.

    Args:
        tensor: Tensor of any shape.

    Returns:
        A scalar.
    """
    return ops.sqrt(ops.sum(tensor * tensor))


def frobenius_norms(tensors: Tensor) -> Tensor:
    """Computes the root of the sum of squares of each of several matrices.

    Args:
        tensors: Tensor of shape `(k, m, n)`.

    Returns:
        Tensor of shape `(k, 1, 1)`.
    """
    return ops.sqrt(ops.sum(tensors * tensors, axis=(1, 2), keepdims=True))


def divide(numerator: Tensor, denominator: Tensor) -> Tensor:
    """Divides, by 1 where the divisor is zero.

    Args:
        numerator: Tensor of any shape.
        denominator: A scalar, or a tensor that broadcasts.

    Returns:
        Tensor of the shape of the numerator.
    """
    one = ops.ones_like(denominator)
    return numerator / ops.where(denominator == 0, one, denominator)


def machine_epsilon(tensor: Tensor) -> float:
    """Gives the machine epsilon of the dtype of a tensor.

    Args:
        tensor: Tensor in float32 or float64.

    Returns:
        A number.
    """
    return float(np.finfo(keras.backend.standardize_dtype(tensor.dtype)).eps)


def rounding_tolerance(size: int, dtype: Any) -> float:
    """Says how far a given matrix may be from those of a set, for rounding alone.

    Args:
        size: Order `n` of the matrix.
        dtype: Its dtype, as NumPy knows it.

    Returns:
        `100 n` times the machine epsilon of a floating or complex dtype, of float64 for
        any other.
    """
    kind = np.dtype(dtype)
    return 100 * size * float(np.finfo(kind if kind.kind in "fc" else "float64").eps)
