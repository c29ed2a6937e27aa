"""Initializers of the papers, and of the free variables of a parametrization."""

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.cayley import matrix_size


@keras.saving.register_keras_serializable(package="keras_ortho")
class SmallUniform(keras.initializers.RandomUniform):
    """Uniform on `(-0.01, 0.01)`: the papers' input kernels.

    Args:
        minval: Lower bound. Default: -0.01.
        maxval: Upper bound. Default: 0.01.
        seed: An int or a `keras.random.SeedGenerator`. Default: `None`, a seed
            of its own.

    Example:
    >>> kernel = SmallUniform(seed=0)((1, 170))
    """

    def __init__(
        self, minval: float = -0.01, maxval: float = 0.01, seed: Any = None
    ) -> None:
        super().__init__(minval=minval, maxval=maxval, seed=seed)


class SkewInitializer:
    """Marks the initializers that make the free entries of a skew matrix.

    A cell calls one with the shape `(n (n - 1) / 2,)` of the entries. Any other
    initializer it calls with `(n, n)`, for a matrix that it takes through the
    inverse of its parametrization.
    """


@keras.saving.register_keras_serializable(package="keras_ortho")
class HenaffSkew(SkewInitializer, keras.initializers.RandomUniform):
    """Skew matrix of 2 x 2 blocks whose Cayley transform rotates by `t_j`.

    The blocks are `[[0, s_j], [-s_j, 0]]` with `s_j = tan(t_j / 2)` and `t_j`
    uniform, so that the Cayley transform has the eigenvalues `exp(+-i t_j)`. Where
    the order is odd the last row and column are zero.

    Args:
        minval: Lower bound of the angles, in radians. Default: 0.
        maxval: Upper bound. Default: pi / 2. Both lie between -pi and pi, which
            no skew matrix reaches.
        seed: An int or a `keras.random.SeedGenerator`. Default: `None`, a seed
            of its own.

    Raises:
        ValueError: If the bounds are not in `(-pi, pi)` or not in order.

    Example:
    >>> entries = HenaffSkew(seed=0)((14365,))  # for n = 170 units

    Reference:

    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
      section 4.1.2, after
      [Henaff et al., 2016](https://proceedings.mlr.press/v48/henaff16.html)
    """

    def __init__(
        self, minval: float = 0.0, maxval: float = math.pi / 2, seed: Any = None
    ) -> None:
        if not -math.pi < minval <= maxval < math.pi:
            raise ValueError(
                "`minval` and `maxval` must be angles with -pi < minval <= maxval < "
                f"pi. Received: minval={minval}, maxval={maxval}"
            )
        super().__init__(minval=minval, maxval=maxval, seed=seed)

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        """Draws the free entries.

        Args:
            shape: `(n (n - 1) / 2,)`.
            dtype: Floating dtype. Default: Keras's.

        Returns:
            Tensor of that shape and dtype, in row order.

        Raises:
            ValueError: If the shape is not that of the free entries.
        """
        if len(shape) != 1:
            raise ValueError(
                "`shape` must be that of the free entries, (n (n - 1) / 2,). "
                f"Received: shape={shape}"
            )
        size = matrix_size(shape[0])
        if size < 2:
            return ops.zeros(shape, dtype=dtype)
        angles = super().__call__((size // 2,), dtype=dtype)
        # Entry (2j, 2j + 1) is the first of row 2j.
        row = np.arange(0, size - 1, 2)
        position = row * (2 * size - row - 1) // 2
        indices = ops.convert_to_tensor(position[:, None], dtype="int32")
        # Keras's tangent gives float32 on JAX, whatever it gets.
        return ops.cast(ops.scatter(indices, ops.tan(angles / 2), shape), angles.dtype)


_NAMED = {"henaff_skew": HenaffSkew, "small_uniform": SmallUniform}


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
