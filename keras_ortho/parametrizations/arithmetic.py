"""Arithmetic that is safe at zero, at infinity and at NaN, and tolerances."""

import math
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend.types import Tensor


def frobenius_norm(tensor: Tensor) -> Tensor:
    """Computes the Frobenius norm of a tensor, over all its entries."""
    return ops.sqrt(ops.sum(tensor * tensor))


def frobenius_norms(tensors: Tensor) -> Tensor:
    """Computes the Frobenius norm of each of several matrices."""
    return ops.sqrt(ops.sum(tensors * tensors, axis=(1, 2), keepdims=True))


def divide(numerator: Tensor, denominator: Tensor) -> Tensor:
    """Divides two tensors, by 1 where the denominator is zero."""
    one = ops.ones_like(denominator)
    return numerator / ops.where(denominator == 0, one, denominator)


def factorized(
    function: Callable[..., Tensor], matrix: Tensor, *rest: Tensor
) -> Tensor:
    """Calls `ops.inv` or `ops.solve`; NaN comes of NaN, where backends may raise."""
    finite = ops.all(ops.isfinite(matrix))
    identity = ops.eye(matrix.shape[0], dtype=matrix.dtype)
    found = function(ops.where(finite, matrix, identity), *rest)
    return ops.where(finite, found, math.nan)


def limited(*parts: Tensor) -> list[Tensor]:
    """Scales a skew `A` to the norm up to which rounding leaves the `I` of `I + A`.

    The parts hold its entries above the diagonal. If `||A||_F` exceeds `1 / (8 eps)`,
    it becomes that; otherwise `A` is returned as it is, bit by bit.
    """
    for part in parts:  # The squares must not overflow.
        largest = ops.max(1e-15 * ops.abs(part), initial=1.0)
        parts = tuple(each / ops.stop_gradient(largest) for each in parts)
    unit = 8.0 * machine_epsilon(parts[0])
    total = sum(ops.sum(ops.square(unit * part)) for part in parts)
    norm = ops.sqrt(ops.maximum(2.0 * total, 1.0))
    return [part / norm for part in parts]


def machine_epsilon(tensor: Tensor) -> float:
    """Returns the machine epsilon of the dtype of a tensor."""
    return float(np.finfo(keras.backend.standardize_dtype(tensor.dtype)).eps)


def rounding_tolerance(size: int, dtype: Any) -> float:
    """Returns the tolerance for rounding errors when a given matrix is checked."""
    kind = np.dtype(dtype)
    return 100 * size * float(np.finfo(kind if kind.kind in "fc" else "float64").eps)
