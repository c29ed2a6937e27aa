"""Skew-symmetric matrices, also as recurrent matrices: of the AntisymmetricRNN."""

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho import checks
from keras_ortho.backend.elementary import tan
from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.arithmetic import (
    placed,
    positions,
    rounding_tolerance,
)
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
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
    size = matrix_size(entries.shape)
    upper = positions(size, size, 1)
    lower = np.where(upper > 0, upper + entries.shape[0], 0).T
    return placed(ops.concatenate([entries, -entries]), upper + lower)


def symmetric_matrix(entries: Tensor) -> Tensor:
    """Builds a symmetric matrix from its upper triangle."""
    size = matrix_size(entries.shape) - 1
    upper = positions(size, size)
    return placed(entries, np.maximum(upper, upper.T))


@keras.saving.register_keras_serializable(package="keras_ortho")
class HenaffSkew(FreeInitializer, keras.initializers.RandomUniform):
    """Initializer for skew-symmetric matrices whose Cayley transform rotates planes.

    The matrix has diagonal blocks `[[0, s_j], [-s_j, 0]]` with `s_j = tan(t_j / 2)` and
    uniform angles `t_j`, those by which its Cayley transform rotates.

    Args:
        minval: Lower bound of the angles, in radians, above -pi. Default: 0.
        maxval: Upper bound of the angles, in radians, below pi. Default: pi / 2.
        seed: Integer or `keras.random.SeedGenerator`. Default: `None`, a random seed.

    Raises:
        ValueError: If a bound is not in `(-pi, pi)`, or `minval` exceeds `maxval`.

    Example:
    >>> entries = HenaffSkew(seed=0)((14365,))  # for n = 170 units

    Reference:
    [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
    section 4.2, after
    [Henaff et al., 2016](https://proceedings.mlr.press/v48/henaff16.html)
    """

    makes = "skew entries"

    def __init__(
        self, minval: float = 0.0, maxval: float = math.pi / 2, seed: Any = None
    ) -> None:
        minval, maxval = checks.check_bounds(minval, maxval)
        received = f"minval={minval}, maxval={maxval}"
        checks.check(minval > -math.pi, "minval", "be an angle above -pi", received)
        checks.check(maxval < math.pi, "maxval", "be an angle below pi", received)
        super().__init__(minval=minval, maxval=maxval, seed=seed)

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        """Draws the free entries in row order, for a shape `(n (n - 1) / 2,)`."""
        size = matrix_size(shape)
        angles = super().__call__((size // 2,), dtype=dtype)
        row, column = np.triu_indices(size, 1)
        in_block = (row % 2 == 0) & (column == row + 1)
        return placed(tan(angles / 2), np.where(in_block, row // 2 + 1, 0))


@keras.saving.register_keras_serializable(package="keras_ortho")
class AntisymmetricNormal(FreeInitializer, keras.initializers.Initializer):
    """Initializer that draws free entries from `N(0, sigma_w^2 / n)` for `n` units.

    The eigenvalues of an antisymmetric matrix then lie between about `+-2 sigma_w i`.

    Args:
        sigma_w: Standard deviation of the entries times `sqrt(n)`, at least 0. The
            paper selects it from 0, 1, 2, 4, 8 and 16 for each task. Default: 1.
        seed: Int or `keras.random.SeedGenerator`. Default: `None`, a random seed.

    Raises:
        ValueError: If `sigma_w` is negative or not finite.

    Example:
    >>> entries = AntisymmetricNormal(4.0, seed=0)((8128,))  # for n = 128 units

    Reference:
    [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), appendix C
    """

    makes = "skew entries"

    def __init__(self, sigma_w: float = 1.0, seed: Any = None) -> None:
        self.sigma_w = checks.check_number("sigma_w", sigma_w)
        self.normal = keras.initializers.RandomNormal(stddev=1.0, seed=seed)

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        """Draws free entries: `(n (n - 1) / 2,)`, or `(n, n)` if unstructured."""
        square = len(shape) == 2 and shape[0] == shape[1]
        size = shape[0] if square else matrix_size(shape)
        return self.normal(shape, dtype=dtype) * (self.sigma_w / math.sqrt(size))

    def get_config(self) -> dict[str, Any]:
        """Returns the config of the initializer."""
        return {"sigma_w": self.sigma_w, "seed": self.normal.get_config()["seed"]}


def _diffused(matrix: Tensor, diffusion: float) -> Tensor:
    return matrix - diffusion * ops.eye(matrix.shape[0], dtype=matrix.dtype)


@keras.saving.register_keras_serializable(package="keras_ortho")
class Unstructured(Parametrization):
    """All real matrices, as `W = M - diffusion I` with all entries of `M` free.

    Args:
        diffusion: Diffusion `gamma`, at least 0. Default: 0.

    Example:
    >>> Unstructured().distance(np.ones((3, 3)))
    0.0
    """

    takes = "skew entries"

    def __init__(self, diffusion: float = 0.0) -> None:
        self.diffusion = checks.check_number("diffusion", diffusion)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Returns one variable, the matrix `M`."""
        make = initializer or AntisymmetricNormal()
        return [FreeVariable("recurrent_kernel", (size, size), make, group="others")]

    def matrix(self, *values: Tensor) -> Tensor:
        """Makes `W = M - diffusion I`."""
        return _diffused(values[0], self.diffusion)

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds `M`."""
        matrix = checks.check_real_square("matrix", matrix)
        return (matrix + self.diffusion * np.eye(len(matrix)),)

    def distance(self, matrix: np.ndarray) -> float:
        """Returns 0: the set contains every real matrix."""
        checks.check_real_square("matrix", matrix)
        return 0.0


@keras.saving.register_keras_serializable(package="keras_ortho")
class Antisymmetric(Unstructured):
    """Antisymmetric matrices with diffusion, `W = M - diffusion I`.

    Args:
        diffusion: Diffusion `gamma`, at least 0. Default: 0.

    Example:
    >>> Antisymmetric().distance(np.array([[0.0, 3.0], [-3.0, 0.0]]))
    0.0

    Reference:
    [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), equation 12
    """

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Returns one variable, the free entries of `M`."""
        make = initializer or AntisymmetricNormal()
        return [FreeVariable("recurrent_skew", (num_entries(size),), make)]

    def matrix(self, *values: Tensor) -> Tensor:
        """Makes `W = M - diffusion I`."""
        return _diffused(skew_matrix(values[0]), self.diffusion)

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds the free entries of `M`."""
        matrix = np.asarray(matrix)
        (skew,) = super().inverse(matrix)
        error = self.distance(matrix)
        largest = max(np.abs(matrix).max(), self.diffusion)
        tolerance = rounding_tolerance(len(matrix), matrix.dtype) * largest
        if error > tolerance:
            raise ValueError(
                "`matrix` must be skew-symmetric, except for a diagonal of -diffusion "
                f"= {-self.diffusion}: M = W + diffusion I with ||M + M^T||_F at most "
                f"{tolerance:.1e}. Received: a matrix with a distance of {error:.1e}"
            )
        return (((skew - skew.T) / 2)[np.triu_indices(len(matrix), 1)],)

    def distance(self, matrix: np.ndarray) -> float:
        """Computes `||M + M^T||_F` of `M = W + diffusion I`, NaN if an entry is."""
        matrix = np.asarray(matrix)
        checks.check_square("matrix", matrix)
        checks.check_real("matrix", matrix)
        skew = matrix + self.diffusion * np.eye(len(matrix))
        return float(np.linalg.norm(skew + skew.T))
