"""The scaled Cayley transform: free entries to an orthogonal matrix.

    W = (I + A)^-1 (I - A) D

with `A` skew-symmetric, given by the `n (n - 1) / 2` entries of its strict upper
triangle in row order, and `D` a diagonal of signs. Helfrich, Willmott and Ye,
"Orthogonal recurrent neural networks with scaled Cayley transform", ICML 2018.
"""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend import with_gradient
from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.kahan import scaled_cayley_inverse
from keras_ortho.parametrizations.orthogonality import random_orthogonal
from keras_ortho.parametrizations.skew import (
    HenaffSkew,
    num_entries,
    skew_matrix,
    upper_entries,
)


def _forward(entries: Tensor) -> tuple[Tensor, Tensor]:
    skew = skew_matrix(entries)
    inverse = ops.inv(ops.eye(skew.shape[0], dtype=skew.dtype) + skew)
    # X + X^T = 2 X^T X. What rounding adds to the difference is most of the error of
    # the inverse where A is large, and is taken away by one step of Newton and Schulz,
    # W (3 I - W^T W) / 2, written for X = (I + W) / 2 so that small parts stay small.
    transpose = ops.transpose(inverse)
    defect = inverse + transpose - 2.0 * ops.matmul(transpose, inverse)
    inverse = inverse + (ops.matmul(inverse, defect) - 0.5 * defect)
    return inverse, inverse


def _backward(inverse: Tensor, upstream: Tensor) -> tuple[Tensor]:
    # dX = -X dA X: nothing needs to be factorized again (theorem 3.2 of the paper).
    transpose = ops.transpose(inverse)
    product = ops.matmul(ops.matmul(transpose, upstream), transpose)
    return (upper_entries(ops.transpose(product) - product),)


# X = (I + A)^-1
_shifted_inverse = with_gradient(_forward, _backward)


def scaled_cayley(entries: Tensor, signs: Tensor) -> Tensor:
    """The scaled Cayley transform `W = (I + A)^-1 (I - A) D`.

    One inverse serves the value and the gradient (Theorem 3.2); a step of Newton and
    Schulz takes away what rounding adds to it. The signs are taken as constants. For
    how far rounding takes `W` from the orthogonal matrices see `orthogonality_error`.

    Args:
        entries: Tensor of shape `(n (n - 1) / 2,)`: the strict upper triangle of
            `A` in row order, float32 or float64.
        signs: Tensor of shape `(n,)`: the diagonal of `D`, entries 1 and -1.

    Returns:
        The orthogonal matrix, of shape `(n, n)` and the dtype of `entries`.

    Raises:
        ValueError: If the shapes do not agree.

    Example:
    >>> scaled_cayley(np.array([1.0]), np.array([1.0, 1.0]))
    [[0, -1], [1, 0]]

    Reference:

    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html)
    """
    size = signs.shape[0]
    if tuple(entries.shape) != (num_entries(size),):
        raise ValueError(
            "`entries` must hold the n (n - 1) / 2 free entries for the n signs. "
            f"Received: entries.shape={tuple(entries.shape)}, "
            f"signs.shape={tuple(signs.shape)}"
        )
    inverse = _shifted_inverse(entries)
    # (I + A)^-1 (I - A) = 2 (I + A)^-1 - I, and rounding harms the right side
    # less: by a factor of ten where A is large.
    identity = ops.eye(size, dtype=inverse.dtype)
    return (2.0 * inverse - identity) * ops.stop_gradient(signs)


def diagonal_signs(size: int, negative_ones: int | float) -> np.ndarray:
    """The diagonal of `D`: ones, then the negative ones.

    Args:
        size: Order `n` of the matrix.
        negative_ones: How many entries are -1. An int is a count in `0 .. n`, a
            float in `[0, 1]` a fraction of the entries, rounded half up. So `1`
            is one entry and `1.0` all of them.

    Returns:
        Array of shape `(n,)`, float64, the -1s last.

    Raises:
        ValueError: If `negative_ones` is neither.

    Example:
    >>> diagonal_signs(4, 0.5)
    array([ 1.,  1., -1., -1.])
    """
    count = negative_ones
    if isinstance(negative_ones, float | np.floating) and 0 <= negative_ones <= 1:
        # The fraction that was meant is the decimal one: 0.7 of 45 is 31.5 and
        # rounds to 32, while the binary neighbor of 0.7 gives a little less.
        count = int(np.floor(round(float(negative_ones) * size, 9) + 0.5))
    is_count = isinstance(count, int | np.integer) and not isinstance(count, bool)
    if not is_count or not 0 <= count <= size:
        raise ValueError(
            "`negative_ones` must be a count, an int between 0 and the number of "
            f"units, {size}, or a fraction of them, a float between 0 and 1. "
            f"Received: negative_ones={negative_ones!r}"
        )
    return np.concatenate([np.ones(size - int(count)), -np.ones(int(count))])


@keras.saving.register_keras_serializable(package="keras_ortho")
class ScaledCayley(Parametrization):
    """All orthogonal matrices, by the scaled Cayley transform: scoRNN's.

    Args:
        negative_ones: How many entries of `D` are -1, the last ones: an int is a
            count, a float in `[0, 1]` a fraction. A matrix that is given brings its
            own signs along. Default: 0.5.

    Example:
    >>> ScaledCayley().distance(np.eye(3))
    0.0
    """

    takes = "skew entries"

    def __init__(self, negative_ones: int | float = 0.5) -> None:
        self.negative_ones = negative_ones

    def check(self, size: int) -> None:
        """Checks the number of negative ones."""
        diagonal_signs(size, self.negative_ones)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the free entries of `A` and the signs `D`."""
        signs = keras.initializers.Constant(diagonal_signs(size, self.negative_ones))
        return [
            FreeVariable(
                "recurrent_skew", (num_entries(size),), initializer or HenaffSkew()
            ),
            FreeVariable("recurrent_signs", (size,), signs, trainable=False),
        ]

    def matrix(self, *values: Tensor) -> Tensor:
        """Makes `W = (I + A)^-1 (I - A) D`."""
        return scaled_cayley(*values)

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds `A` and `D`, of any orthogonal matrix."""
        return scaled_cayley_inverse(matrix)

    def sample(self, size: int, seed: int | None = None) -> np.ndarray:
        """Draws an orthogonal matrix, each as likely."""
        return random_orthogonal(size, seed)
