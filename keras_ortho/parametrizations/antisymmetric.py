"""Antisymmetric matrices with diffusion: free entries to a matrix, and back.

    W = M - gamma I

with `M` skew-symmetric, given by the `n (n - 1) / 2` entries of its strict upper
triangle in row order, and a diffusion `gamma` that is not trained. All eigenvalues of
`W` have the real part `-gamma`. Chang, Chen, Haber and Chi, "AntisymmetricRNN: A
dynamical system view on recurrent neural networks", ICLR 2019.
"""

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.checks import (
    check_number,
    check_real,
    check_real_square,
    check_square,
)
from keras_ortho.parametrizations.arithmetic import rounding_tolerance
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.free import FreeInitializer
from keras_ortho.parametrizations.skew import matrix_size, num_entries, skew_matrix


def diffused(matrix: Tensor, diffusion: float) -> Tensor:
    """Subtracts the diffusion from the diagonal of a matrix.

    Args:
        matrix: Tensor of shape `(n, n)`.
        diffusion: The number `gamma`.

    Returns:
        `M - gamma I`, a tensor of the same shape and dtype.

    Example:
    >>> diffused(np.ones((2, 2)), 0.25)
    [[0.75, 1], [1, 0.75]]
    """
    return matrix - diffusion * ops.eye(matrix.shape[0], dtype=matrix.dtype)


def antisymmetric(entries: Tensor, diffusion: float = 0.0) -> Tensor:
    """Makes `W = M - gamma I` with a skew-symmetric `M`.

    Args:
        entries: Tensor of shape `(n (n - 1) / 2,)`: the strict upper triangle of
            `M` in row order, floating.
        diffusion: The number `gamma`. Default: 0.

    Returns:
        Tensor of shape `(n, n)` and the dtype of `entries`.

    Raises:
        ValueError: If no matrix has that many entries.

    Example:
    >>> antisymmetric(np.array([2.0]), diffusion=0.5)
    [[-0.5, 2], [-2, -0.5]]

    Reference:

    - [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), equation 12
    """
    return diffused(skew_matrix(entries), diffusion)


def antisymmetry_error(matrix: Tensor, diffusion: float = 0.0) -> float:
    """The distance `||M + M^T||_F` of `M = W + gamma I` from skew symmetry.

    It is exactly 0 for a matrix of `antisymmetric` without diffusion, whatever its
    precision, and otherwise the rounding of the diagonal.

    Args:
        matrix: Tensor or array of shape `(n, n)`, the matrix `W`.
        diffusion: The number `gamma`. Default: 0.

    Returns:
        The Frobenius norm, computed in float64.

    Raises:
        ValueError: If the matrix is not square, or complex.

    Example:
    >>> antisymmetry_error(np.array([[0.0, 3.0], [-3.0, 0.0]]))
    0.0
    """
    matrix = np.asarray(ops.convert_to_numpy(matrix))
    check_square("matrix", matrix)
    check_real("matrix", matrix)
    skew = matrix.astype("float64") + diffusion * np.eye(len(matrix))
    return float(np.linalg.norm(skew + skew.T))


def antisymmetric_inverse(matrix: np.ndarray, diffusion: float = 0.0) -> np.ndarray:
    """Finds the entries of `M` in `W = M - gamma I`.

    Args:
        matrix: Real array of shape `(n, n)` with the real part of all eigenvalues
            at `-diffusion`: `W + gamma I` is skew-symmetric up to `100 n` times the
            rounding unit of its dtype, relative to its largest entry. The
            skew-symmetric part is used.
        diffusion: The number `gamma`. Default: 0.

    Returns:
        Array of shape `(n (n - 1) / 2,)`, float64.

    Raises:
        ValueError: If the matrix is not square, real and finite, or not of that form.

    Example:
    >>> antisymmetric_inverse(np.array([[-0.5, 2.0], [-2.0, -0.5]]), diffusion=0.5)
    array([2.])
    """
    matrix = np.asarray(matrix)
    skew = check_real_square("matrix", matrix)
    error = antisymmetry_error(skew, diffusion)
    largest = max(np.abs(matrix).max(initial=0.0), diffusion)
    tolerance = rounding_tolerance(len(matrix), matrix.dtype) * largest
    if error > tolerance:
        raise ValueError(
            "`matrix` must be skew-symmetric but for a diagonal of "
            f"-diffusion = {-diffusion}: M = W + diffusion I with ||M + M^T||_F at "
            f"most {tolerance:.1e}. Received: a matrix with a distance of {error:.1e}"
        )
    return ((skew - skew.T) / 2)[np.triu_indices(len(matrix), 1)]


@keras.saving.register_keras_serializable(package="keras_ortho")
class AntisymmetricNormal(FreeInitializer, keras.initializers.Initializer):
    """Free entries drawn from `N(0, sigma_w^2 / n)`, for `n` units.

    The entries are those of the strict upper triangle of the antisymmetric matrix,
    or all of an unstructured one. The eigenvalues of the antisymmetric matrix then
    lie on the imaginary axis between about `-2 sigma_w i` and `2 sigma_w i`.

    Args:
        sigma_w: The number `sigma_w`, at least 0. The paper chooses it from 0, 1,
            2, 4, 8 and 16 for each task. Default: 1.
        seed: Int or `keras.random.SeedGenerator`. Default: `None`, one of its own.

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
        """Gives the arguments that make an equal initializer."""
        return {"sigma_w": self.sigma_w, "seed": self.normal.get_config()["seed"]}


class _Diffused(Parametrization):
    """Sets of matrices `M - diffusion I`."""

    takes = "skew entries"

    def __init__(self, diffusion: float = 0.0) -> None:
        self.diffusion = check_number("diffusion", diffusion)


@keras.saving.register_keras_serializable(package="keras_ortho")
class Antisymmetric(_Diffused):
    """Antisymmetric matrices with diffusion, `W = M - diffusion I`.

    Args:
        diffusion: The number `gamma`, at least 0. Default: 0.

    Example:
    >>> Antisymmetric().distance(np.array([[0.0, 3.0], [-3.0, 0.0]]))
    0.0
    """

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the free entries of `M`."""
        initializer = initializer or AntisymmetricNormal()
        return [FreeVariable("recurrent_skew", (num_entries(size),), initializer)]

    def matrix(self, *values: Tensor) -> Tensor:
        """Makes `W = M - diffusion I`."""
        (entries,) = values
        return antisymmetric(entries, self.diffusion)

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds the entries of `M`, see `antisymmetric_inverse`."""
        return (antisymmetric_inverse(matrix, self.diffusion),)

    def distance(self, matrix: np.ndarray) -> float:
        """Measures `||M + M^T||_F`."""
        return antisymmetry_error(matrix, self.diffusion)


@keras.saving.register_keras_serializable(package="keras_ortho")
class Unstructured(_Diffused):
    """All matrices, `W = M - diffusion I` with every entry of `M` free.

    Args:
        diffusion: The number `gamma`, at least 0. Default: 0.

    Example:
    >>> Unstructured().distance(np.ones((3, 3)))
    0.0
    """

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the entries of `M`."""
        initializer = initializer or AntisymmetricNormal()
        return [
            FreeVariable("recurrent_kernel", (size, size), initializer, group="others")
        ]

    def matrix(self, *values: Tensor) -> Tensor:
        """Makes `W = M - diffusion I`."""
        (matrix,) = values
        return diffused(matrix, self.diffusion)

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds `M`."""
        matrix = check_real_square("matrix", matrix)
        return (matrix + self.diffusion * np.eye(len(matrix)),)

    def distance(self, matrix: np.ndarray) -> float:
        """Gives 0: every real matrix is one of these."""
        check_real_square("matrix", matrix)
        return 0.0
