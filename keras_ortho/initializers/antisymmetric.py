"""Initializers of the AntisymmetricRNN."""

import math
from typing import Any

import keras

from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_number
from keras_ortho.initializers.free import FreeInitializer
from keras_ortho.parametrizations.cayley import matrix_size


@keras.saving.register_keras_serializable(package="keras_ortho")
class AntisymmetricNormal(FreeInitializer, keras.initializers.Initializer):
    """Free entries drawn from `N(0, sigma_w^2 / n)`, for `n` units.

    The entries are those of the strict upper triangle of the antisymmetric matrix,
    or all of an unstructured one. The eigenvalues of the antisymmetric matrix then
    lie on the imaginary axis between about `-2 sigma_w i` and `2 sigma_w i`.

    Args:
        sigma_w: The number `sigma_w`, at least 0. The paper chooses it from 0, 1,
            2, 4, 8 and 16 for each task. Default: 1.
        seed: An int or a `keras.random.SeedGenerator`. Default: `None`, a seed
            of its own.

    Raises:
        ValueError: If `sigma_w` is negative or not finite.

    Example:
    >>> entries = AntisymmetricNormal(4.0, seed=0)((8128,))  # for n = 128 units

    Reference:

    - [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), appendix C
    """

    makes = "skew entries"

    def __init__(self, sigma_w: float = 1.0, seed: Any = None) -> None:
        self.sigma_w = check_number("sigma_w", sigma_w)
        self.normal = keras.initializers.RandomNormal(stddev=1.0, seed=seed)

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        """Draws the free entries.

        Args:
            shape: `(n (n - 1) / 2,)`, or `(n, n)` for an unstructured matrix.
            dtype: Floating dtype. Default: Keras's.

        Returns:
            Tensor of that shape and dtype.

        Raises:
            ValueError: If the shape is neither.
        """
        square = len(shape) == 2 and shape[0] == shape[1]
        if not square and len(shape) != 1:
            raise ValueError(
                "`shape` must be that of the free entries, (n (n - 1) / 2,), or of a "
                f"square matrix. Received: shape={shape}"
            )
        size = shape[0] if square else matrix_size(shape[0])
        return self.normal(shape, dtype=dtype) * (self.sigma_w / math.sqrt(size))

    def get_config(self) -> dict[str, Any]:
        """Gives the arguments that make an equal initializer.

        Returns:
            A dictionary that JSON can hold.
        """
        return {"sigma_w": self.sigma_w, "seed": self.normal.get_config()["seed"]}


@keras.saving.register_keras_serializable(package="keras_ortho")
class FanInNormal(keras.initializers.VarianceScaling):
    """Normal entries with the variance `1 / m`, for `m` inputs, not truncated.

    Args:
        seed: An int or a `keras.random.SeedGenerator`. Default: `None`, a seed
            of its own.

    Example:
    >>> kernel = FanInNormal(seed=0)((96, 256))  # a deviation of 0.1

    Reference:

    - [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), appendix C
    """

    def __init__(self, seed: Any = None) -> None:
        super().__init__(1.0, "fan_in", "untruncated_normal", seed=seed)

    def get_config(self) -> dict[str, Any]:
        """Gives the arguments that make an equal initializer.

        Returns:
            A dictionary that JSON can hold.
        """
        return {"seed": super().get_config()["seed"]}
