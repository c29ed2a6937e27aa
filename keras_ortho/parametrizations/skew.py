"""Skew-symmetric matrices from their strict upper triangles, and an initializer."""

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend.elementary import tan
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_finite
from keras_ortho.parametrizations.free_initializers import FreeInitializer


def num_entries(size: int) -> int:
    """Returns the number of free entries of a skew-symmetric matrix."""
    return size * (size - 1) // 2


def matrix_size(shape: tuple[int, ...]) -> int:
    """Returns the order of the skew-symmetric matrix with free entries of a shape."""
    entries = shape[0] if len(shape) == 1 else -1
    size = (1 + math.isqrt(1 + 8 * max(entries, 0))) // 2
    if num_entries(size) != entries:
        raise ValueError(
            "Free entries must have the shape (n (n - 1) / 2,) for some order n. "
            f"Received: shape={tuple(shape)}"
        )
    return size


def skew_matrix(entries: Tensor) -> Tensor:
    """Builds a skew-symmetric matrix from its strict upper triangle."""
    upper = _positions(matrix_size(entries.shape), 1)
    lower = np.where(upper > 0, upper + entries.shape[0], 0).T
    zero = ops.zeros((1,), dtype=entries.dtype)
    return ops.take(ops.concatenate([zero, entries, -entries]), upper + lower)


def symmetric_matrix(entries: Tensor) -> Tensor:
    """Builds a symmetric matrix from its upper triangle."""
    upper = _positions(matrix_size(entries.shape) - 1, 0)
    return ops.take(entries, np.maximum(upper, upper.T) - 1)


def _positions(size: int, diagonal: int) -> np.ndarray:
    """Numbers the elements of an upper triangle from 1 in row order."""
    position = np.zeros((size, size), "int32")
    rows, columns = np.triu_indices(size, diagonal)
    position[rows, columns] = np.arange(1, len(rows) + 1)
    return position


def upper_entries(matrix: Tensor, *, diagonal: bool = False) -> Tensor:
    """Reads the upper triangle of a matrix, in row order."""
    size = matrix.shape[0]
    rows, columns = np.triu_indices(size, 0 if diagonal else 1)
    position = (rows * size + columns).astype("int32")
    return ops.take(ops.reshape(matrix, (-1,)), position)


@keras.saving.register_keras_serializable(package="keras_ortho")
class HenaffSkew(FreeInitializer, keras.initializers.RandomUniform):
    """Initializer for skew-symmetric matrices whose Cayley transform rotates planes.

    The matrix has diagonal blocks `[[0, s_j], [-s_j, 0]]` with `s_j = tan(t_j / 2)` and
    uniform angles `t_j`. Its Cayley transform has the eigenvalues `exp(+-i t_j)`, and 1
    if the order is odd.

    Args:
        minval: Lower bound of the angles, in radians. Default: 0.
        maxval: Upper bound of the angles, in radians. Default: pi / 2. Both bounds lie
            in `(-pi, pi)`, because no Cayley transform rotates by pi.
        seed: Integer or `keras.random.SeedGenerator`. Default: `None`, a random seed.

    Raises:
        ValueError: If a bound is not in `(-pi, pi)`, or `minval` exceeds `maxval`.

    Example:
    >>> entries = HenaffSkew(seed=0)((14365,))  # for n = 170 units

    Reference:
    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
      section 4.2, after
      [Henaff et al., 2016](https://proceedings.mlr.press/v48/henaff16.html)
    """

    makes = "skew entries"

    def __init__(
        self, minval: float = 0.0, maxval: float = math.pi / 2, seed: Any = None
    ) -> None:
        minval, maxval = check_finite("minval", minval), check_finite("maxval", maxval)
        if not -math.pi < minval <= maxval < math.pi:
            raise ValueError(
                "`minval` and `maxval` must be angles with -pi < minval <= maxval < "
                f"pi. Received: minval={minval}, maxval={maxval}"
            )
        super().__init__(minval=minval, maxval=maxval, seed=seed)

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        """Draws the free entries in row order, for a shape `(n (n - 1) / 2,)`."""
        size = matrix_size(shape)
        if size < 2:
            return ops.zeros(shape, dtype=dtype)
        angles = super().__call__((size // 2,), dtype=dtype)
        # Entry (2j, 2j + 1) is the first free entry of row 2j.
        row = np.arange(0, size - 1, 2)
        position = row * (2 * size - row - 1) // 2
        indices = ops.convert_to_tensor(position[:, None], dtype="int32")
        return ops.scatter(indices, tan(angles / 2), shape)
