"""The real Schur form: a general matrix from a rotation and a triangle.

    W = P (Theta + T) P^T

with `P` orthogonal, of determinant 1; `Theta` of 2 x 2 blocks
`gamma_j [[cos t_j, -sin t_j], [sin t_j, cos t_j]]` along the diagonal, and for an odd
order a last entry `gamma`; and `T` strictly upper triangular, the entries within the
blocks included. Kerg et al., "Non-normal recurrent neural network (nnRNN): learning
long time dependencies while improving expressivity with transient dynamics", NeurIPS
2019.
"""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend.angles import cos, sin
from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.cayley import scaled_cayley
from keras_ortho.parametrizations.exponential import skew_exponential
from keras_ortho.parametrizations.phases import UniformPhases
from keras_ortho.parametrizations.real_matrix import real_square
from keras_ortho.parametrizations.schur_inverse import MAPS, schur_inverse
from keras_ortho.parametrizations.skew import HenaffSkew, num_entries


def check_map(map: str) -> None:
    """Checks the name of a map.

    Args:
        map: The name.

    Raises:
        ValueError: If there is no such map.
    """
    if map not in MAPS:
        raise ValueError(
            f'`map` must be "exponential" or "cayley". Received: map={map!r}'
        )


def orthogonal_basis(entries: Tensor, size: int, map: str) -> Tensor:
    """Makes `P` from the free entries of a skew-symmetric matrix `A`.

    Args:
        entries: Tensor of shape `(n (n - 1) / 2,)`, in row order.
        size: Order `n`.
        map: `"exponential"` for `exp(A)`, `"cayley"` for `(I + A)^-1 (I - A)`.

    Returns:
        Orthogonal tensor of shape `(n, n)`, of determinant 1.

    Raises:
        ValueError: If there is no such map.
    """
    check_map(map)
    if map == "exponential":
        return skew_exponential(entries)
    return scaled_cayley(entries, ops.ones((size,), dtype=entries.dtype))


def _triangle(upper: Tensor, radii: Tensor, angles: Tensor) -> Tensor:
    """`Theta + T`."""
    blocks = angles.shape[0]
    size = blocks + radii.shape[0]
    zero = ops.zeros((1,), dtype=upper.dtype)
    # Where each element lies in [0, T] and in [0, cosines, sines, -sines, last].
    triangle = np.zeros((size, size), "int32")
    triangle[np.triu_indices(size, 1)] = np.arange(1, num_entries(size) + 1)
    rotations = np.zeros((size, size), "int32")
    first = 2 * np.arange(blocks)
    rotations[first, first] = rotations[first + 1, first + 1] = 1 + np.arange(blocks)
    rotations[first + 1, first] = 1 + blocks + np.arange(blocks)
    rotations[first, first + 1] = 1 + 2 * blocks + np.arange(blocks)
    if size % 2:
        rotations[-1, -1] = 1 + 3 * blocks
    cosines, sines = radii[:blocks] * cos(angles), radii[:blocks] * sin(angles)
    parts = [zero, cosines, sines, -sines, radii[blocks:]]
    return ops.take(ops.concatenate(parts), rotations) + ops.take(
        ops.concatenate([zero, upper]), triangle
    )


def schur_matrix(
    entries: Tensor,
    upper: Tensor,
    radii: Tensor,
    angles: Tensor,
    map: str = "exponential",
) -> Tensor:
    """The general matrix `W = P (Theta + T) P^T`.

    Every real matrix has this form, and every choice of the variables is one.

    Args:
        entries: Tensor of shape `(n (n - 1) / 2,)`: the strict upper triangle of the
            skew-symmetric matrix that `P` is made from, in row order.
        upper: Tensor of shape `(n (n - 1) / 2,)`: `T` in row order.
        radii: Tensor of shape `(ceil(n / 2),)`: the `gamma_j`.
        angles: Tensor of shape `(floor(n / 2),)`: the `t_j`, in radians.
        map: How `P` is made, `"exponential"` or `"cayley"`. Default:
            `"exponential"`.

    Returns:
        Tensor of shape `(n, n)` and the dtype of the arguments. Where `T` is zero
        its eigenvalues are `gamma_j exp(+-i t_j)`.

    Raises:
        ValueError: If the shapes do not agree, or there is no such map.

    Example:
    >>> schur_matrix(np.zeros(1), np.ones(1), np.ones(1), np.zeros(1))
    [[1, 1], [0, 1]]

    Reference:

    - [Kerg et al., 2019](https://arxiv.org/abs/1905.12080), equations 4 and 5
    """
    size = radii.shape[0] + angles.shape[0]
    found = [tuple(x.shape) for x in (entries, upper, radii, angles)]
    count = num_entries(size)
    if found != [(count,), (count,), ((size + 1) // 2,), (size // 2,)]:
        raise ValueError(
            "`entries` and `upper` must hold n (n - 1) / 2 numbers, `radii` "
            "ceil(n / 2) and `angles` floor(n / 2). Received: entries.shape="
            f"{found[0]}, upper.shape={found[1]}, radii.shape={found[2]}, "
            f"angles.shape={found[3]}"
        )
    basis = orthogonal_basis(entries, size, map)
    product = ops.matmul(basis, _triangle(upper, radii, angles))
    return ops.matmul(product, ops.transpose(basis))


@keras.saving.register_keras_serializable(package="keras_ortho")
class RealSchur(Parametrization):
    """All real matrices, by their real Schur form `W = P (Theta + T) P^T`: nnRNN's.

    `P` is trained as the papers train an orthogonal matrix, `Theta` and `T` as any
    other variable.

    Args:
        map: How the orthogonal factor `P` is made, `"exponential"` or `"cayley"`.
            Default: `"exponential"`.
        angles_initializer: Initializer of the angles. Default: `None`, uniform on
            `(-pi, pi)`.
        radii_initializer: Initializer of the radii. Default: `None`, ones.
        upper_initializer: Initializer of `T`. Default: `None`, zeros.

    Raises:
        ValueError: If there is no such map.

    Example:
    >>> [variable.name for variable in RealSchur().variables(4)]
    ['recurrent_skew', 'schur_upper', 'schur_radii', 'schur_angles']
    """

    takes = "skew entries"

    def __init__(
        self,
        map: str = "exponential",
        angles_initializer: Any = None,
        radii_initializer: Any = None,
        upper_initializer: Any = None,
    ) -> None:
        check_map(map)
        self.map = map
        self.angles_initializer = angles_initializer
        self.radii_initializer = radii_initializer
        self.upper_initializer = upper_initializer

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the free entries of `A` and of `T`, the radii and the angles."""
        triangle, blocks = (num_entries(size),), size // 2
        zeros, ones = keras.initializers.Zeros(), keras.initializers.Ones()
        rows = (
            ("schur_upper", triangle, self.upper_initializer or zeros),
            ("schur_radii", (size - blocks,), self.radii_initializer or ones),
            ("schur_angles", (blocks,), self.angles_initializer or UniformPhases()),
        )
        return [
            FreeVariable("recurrent_skew", triangle, initializer or HenaffSkew()),
            *(FreeVariable(*row, group="others") for row in rows),
        ]

    def matrix(self, *values: Tensor) -> Tensor:
        """Makes `W = P (Theta + T) P^T`."""
        entries, upper, radii, angles = values
        return schur_matrix(entries, upper, radii, angles, self.map)

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds the variables, of any real matrix; it needs SciPy."""
        return schur_inverse(matrix, self.map)

    def distance(self, matrix: np.ndarray) -> float:
        """Gives 0: every real matrix is one of these."""
        real_square(matrix)
        return 0.0
