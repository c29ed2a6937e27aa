"""Initializer of the uRNN, and of the full-capacity uRNN."""

import math
from typing import Any

import keras
from keras import ops

from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_finite
from keras_ortho.initializers.free import FreeInitializer
from keras_ortho.parametrizations.restricted_unitary import restricted_unitary


@keras.saving.register_keras_serializable(package="keras_ortho")
class UnitaryComposition(FreeInitializer, keras.initializers.RandomUniform):
    """Draws the parts of the uRNN's unitary matrix, or the whole of it.

    The phases of `W = D_1 F R_1 P D_2 F^-1 R_2 D_3` are uniform, the reflectors are
    Glorot-uniform as a matrix of shape `(2, 2n)`, and the permutation is any with
    the same probability. What is drawn follows from the shape that is asked for.

    Args:
        minval: Lower bound of the phases, in radians. Default: -pi.
        maxval: Upper bound. Default: pi.
        seed: An int or a `keras.random.SeedGenerator`. Default: `None`, a seed
            of its own.

    Example:
    >>> matrix = UnitaryComposition(seed=0)((2, 8, 8))  # its real and imaginary part

    Reference:

    - [Arjovsky et al., 2016](https://proceedings.mlr.press/v48/arjovsky16.html),
      section 4.1 and the released code
    """

    makes = "a unitary composition"

    def __init__(
        self, minval: float = -math.pi, maxval: float = math.pi, seed: Any = None
    ) -> None:
        super().__init__(
            minval=check_finite("minval", minval),
            maxval=check_finite("maxval", maxval),
            seed=seed,
        )

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        """Draws free variables.

        Args:
            shape: `(3, n)` for the phases, `(2, 2n)` for the reflectors, `(n,)` for
                the permutation, or `(2, n, n)` for the real and the imaginary part
                of a matrix that is composed of them.
            dtype: Dtype, of integers for the permutation. Default: Keras's, or
                `"int32"`.

        Returns:
            Tensor of that shape and dtype.

        Raises:
            ValueError: If the shape is none of those.
        """
        dtype = None if dtype is None else keras.backend.standardize_dtype(dtype)
        kind = (len(shape), shape[0])
        if kind == (2, 3):
            return super().__call__(shape, dtype=dtype)
        if kind == (2, 2) and shape[1] % 2 == 0:
            return keras.initializers.GlorotUniform(self._seed(1))(shape, dtype=dtype)
        if len(shape) == 1 and (dtype is None or "int" in dtype):
            numbers = ops.arange(shape[0], dtype="int32")
            drawn = keras.random.shuffle(numbers, seed=self._seed(2))
            return ops.cast(drawn, dtype or "int32")
        if kind != (3, 2) or shape[1] != shape[2]:
            raise ValueError(
                "`shape` must be (3, n), (2, 2n), (2, n, n), or (n,) for "
                f"integers. Received: shape={shape}, dtype={dtype}"
            )
        size = shape[1]
        made = wide_dtype(dtype)
        rows = restricted_unitary(
            self((3, size), made), self((2, 2 * size), made), self((size,), "int32")
        )
        parts = ops.stack(ops.split(rows, 2, axis=1))
        return ops.cast(parts, dtype or keras.config.floatx())

    def _seed(self, offset: int) -> Any:
        # One int gives the same numbers at each call: the parts need one each.
        return self.seed + offset if isinstance(self.seed, int) else self.seed
