"""The initializer of the ENRNN's short-term matrix."""

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend.types import Tensor


@keras.saving.register_keras_serializable(package="keras_ortho")
class ScaledRotations(keras.initializers.RandomUniform):
    """Block diagonal matrix of scaled rotations `g [[cos t, -sin t], [sin t, cos t]]`.

    Each block has an angle `t` uniform on `(0, max_angle)` and a factor `g` uniform on
    `(-max_radius, max_radius)`, and so the eigenvalues `g exp(+-i t)`. Where the order
    is odd the last entry is a factor by itself.

    Args:
        max_angle: Upper bound of the angles, in radians. Default: pi / 2.
        max_radius: Upper bound of the moduli of the eigenvalues, more than 0.
            Default: 1.
        seed: An int or a `keras.random.SeedGenerator`. Default: `None`, a seed
            of its own.

    Raises:
        ValueError: If a bound is not a finite number or out of its range.

    Example:
    >>> ScaledRotations(seed=0)((4, 4))

    Reference:

    - [Helfrich and Ye, 2020](https://arxiv.org/abs/1911.07964), section 4
    """

    def __init__(
        self,
        max_angle: float = math.pi / 2,
        max_radius: float = 1.0,
        seed: Any = None,
    ) -> None:
        if not 0 <= max_angle <= math.pi or not 0 < max_radius < math.inf:
            raise ValueError(
                "`max_angle` must lie between 0 and pi, `max_radius` be finite and "
                f"more than 0. Received: max_angle={max_angle}, max_radius={max_radius}"
            )
        super().__init__(minval=0.0, maxval=1.0, seed=seed)
        self.max_angle = max_angle
        self.max_radius = max_radius

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        """Draws the matrix.

        Args:
            shape: `(n, n)`.
            dtype: Floating dtype. Default: Keras's.

        Returns:
            Tensor of that shape and dtype.

        Raises:
            ValueError: If the shape is not that of a square matrix.
        """
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(
                f"`shape` must be that of a square matrix. Received: shape={shape}"
            )
        size = shape[0]
        drawn = super().__call__((2, (size + 1) // 2), dtype=dtype)
        # Of the last row, where that is by itself, the angle is zero.
        angles = self.max_angle * drawn[0] * (np.arange(1, size + 1, 2) < size)
        factors = self.max_radius * (2.0 * drawn[1] - 1.0)
        cosines = ops.repeat(factors * ops.cos(angles), 2)[:size]
        sines = ops.repeat(factors * ops.sin(angles), 2)[: size - 1]
        # Those between two blocks are not there.
        sines = sines * (np.arange(size - 1) % 2 == 0)
        matrix = ops.diag(cosines)
        if size > 1:
            matrix = matrix + ops.diag(sines, k=-1) - ops.diag(sines, k=1)
        # Keras's cosine gives float32 on JAX, whatever it gets.
        return ops.cast(matrix, drawn.dtype)

    def get_config(self) -> dict[str, Any]:
        """Gives the arguments that make an equal initializer.

        Returns:
            A dictionary that JSON can hold.
        """
        config = super().get_config()
        return {
            "max_angle": self.max_angle,
            "max_radius": self.max_radius,
            "seed": config["seed"],
        }
