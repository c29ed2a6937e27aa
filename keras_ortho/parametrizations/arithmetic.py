"""Norms, division that is safe at zero, and tolerances for rounding."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend.types import Tensor


def frobenius_norm(tensor: Tensor) -> Tensor:
    """Computes the Frobenius norm of a tensor, over all its entries.

    Args:
        tensor: Tensor of any shape.

    Returns:
        A scalar.
    """
    return ops.sqrt(ops.sum(tensor * tensor))


def frobenius_norms(tensors: Tensor) -> Tensor:
    """Computes the Frobenius norm of each of several matrices.

    Args:
        tensors: Tensor of shape `(k, m, n)`: the `k` matrices.

    Returns:
        Tensor of shape `(k, 1, 1)`.
    """
    return ops.sqrt(ops.sum(tensors * tensors, axis=(1, 2), keepdims=True))


def divide(numerator: Tensor, denominator: Tensor) -> Tensor:
    """Divides two tensors, by 1 where the denominator is zero.

    Args:
        numerator: Tensor of any shape.
        denominator: A scalar, or a tensor that broadcasts to that shape.

    Returns:
        Tensor of the shape of `numerator`.
    """
    one = ops.ones_like(denominator)
    return numerator / ops.where(denominator == 0, one, denominator)


def machine_epsilon(tensor: Tensor) -> float:
    """Returns the machine epsilon of the dtype of a tensor.

    Args:
        tensor: Tensor of dtype float32 or float64.

    Returns:
        A float.
    """
    return float(np.finfo(keras.backend.standardize_dtype(tensor.dtype)).eps)


def rounding_tolerance(size: int, dtype: Any) -> float:
    """Returns the tolerance for rounding errors when a given matrix is checked.

    Args:
        size: Order `n` of the matrix.
        dtype: NumPy dtype of the matrix.

    Returns:
        `100 n` times the machine epsilon of the dtype. For dtypes that are not floating
        or complex, that of float64 is used.
    """
    kind = np.dtype(dtype)
    return 100 * size * float(np.finfo(kind if kind.kind in "fc" else "float64").eps)
