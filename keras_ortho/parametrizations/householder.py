"""Products of Householder reflectors, in blocks of the compact WY form.

    Q = H_n(u_n) H_{n-1}(u_{n-1}) ... H_{n-m+1}(u_{n-m+1})

`H_k(u)` is the reflector `I - 2 u u^T / u^T u` of the last `k` of `n` coordinates, and
`u` has `k` entries. They are packed into one vector, the longest first. Mhammedi et
al., "Efficient orthogonal parametrisation of recurrent neural networks using
Householder reflections", ICML 2017.

Two conventions make the map total. A reflector that is zero is the identity, as in
Zhang, Lei and Dhillon, ICML 2018; its gradient is zero, so it stays one. `H_1(u)` is
the sign of `u`, 1 at zero, as in oRNN, rather than always -1: so with `m = n` both
determinants can be reached from any other reflectors, and every orthogonal matrix is a
product of reflectors none of which is zero.

The inverse is Householder's QR factorization: the reflector `u_n` takes the first
column of the matrix to `e_1`, the next one the second column of what is left, and so
on; what is left in the end is the identity.
"""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend import with_gradient
from keras_ortho.backend.precision import wide_tensor
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import is_integer
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.orthogonality import nearest_orthogonal
from keras_ortho.parametrizations.reflectors import (
    NormalReflectors,
    check_invertible,
    check_reflections,
    num_reflector_entries,
    reflector_rows,
    reflector_size,
    scaled_rows,
    unit_length,
)

# So many reflectors are multiplied at once. In the worst case, reflectors that are all
# alike, the error of `m` at once grows with m^2, and of blocks of them only with m.
_BLOCK = 32


def _forward(gram: Tensor) -> tuple[Tensor, Tensor]:
    size, dtype = gram.shape[0], gram.dtype
    # Of a reflector that is zero the length plays no part.
    lengths = ops.diagonal(gram)
    lengths = ops.where(lengths > 0, lengths, ops.ones_like(lengths))
    half = 0.5 * ops.diag(lengths) + ops.triu(gram, 1)
    inverse = ops.solve_triangular(half, ops.eye(size, dtype=dtype), lower=False)
    return inverse, inverse


def _backward(inverse: Tensor, upstream: Tensor) -> tuple[Tensor]:
    # dT = -T dS T, and what was inverted need not be solved with again.
    transpose = ops.transpose(inverse)
    product = ops.matmul(ops.matmul(transpose, upstream), transpose)
    diagonal = 0.5 * ops.diag(ops.diagonal(product))
    return (-ops.triu(product, 1) - diagonal,)


# T = S^-1, with S the upper triangle of the Gram matrix, half its diagonal: as in
# `S + S^T = Y Y^T`, on which orthogonality rests.
_wy_inverse = with_gradient(_forward, _backward)


def _reflect(rows: Tensor, matrix: Tensor) -> Tensor:
    """Multiplies a matrix by reflectors of all its coordinates, from the left."""
    inverse = _wy_inverse(ops.matmul(rows, ops.transpose(rows)))
    product = ops.matmul(ops.matmul(inverse, rows), matrix)
    return matrix - ops.matmul(ops.transpose(rows), product)


def _bordered(matrix: Tensor, count: int) -> Tensor:
    """Puts an identity matrix of order `count` in front of a matrix, and zeros."""
    identity = ops.eye(count, count + matrix.shape[1], dtype=matrix.dtype)
    return ops.concatenate([identity, ops.pad(matrix, ((0, 0), (count, 0)))])


def householder_product(
    reflectors: Tensor, size: int, columns: int | None = None
) -> Tensor:
    """The product `H_n(u_n) ... H_{n-m+1}(u_{n-m+1})` of `m` reflectors.

    A block of them, in the rows of `Y`, is `I - Y^T T Y`, where `T^-1` is the upper
    triangle of `Y Y^T` with half its diagonal: one triangular solve and products of
    matrices. The same `T` serves the gradient, which has all three terms of equation
    15 of Zhang, Lei and Dhillon. The blocks are multiplied from the last to the first.

    The length of a reflector plays no part. A zero reflector is the identity, and
    one of a single entry the sign of that entry, which has no gradient.

    Args:
        reflectors: Tensor of shape `(m n - m (m - 1) / 2,)`, float32 or float64: the
            reflector of all `n` coordinates, that of the last `n - 1`, and so on.
        size: Order `n` of the matrix.
        columns: How many of the first columns to compute. Default: `None`, all.

    Returns:
        The orthogonal matrix, of shape `(n, n)`, or its first columns, in the dtype of
        the reflectors.

    Raises:
        ValueError: If no number of reflectors has so many entries, they are of another
            dtype, or there are not as many columns.

    Example:
    >>> householder_product(np.array([1.0, 1.0, -2.0]), 2)
    [[0, 1], [-1, 0]]

    Reference:

    - [Mhammedi et al., 2017](https://proceedings.mlr.press/v70/mhammedi17a.html)
    - [Zhang et al., 2018](https://proceedings.mlr.press/v80/zhang18g.html)
    - [Joffrain et al., 2006](https://doi.org/10.1145/1141885.1141886), the compact
      WY form
    """
    columns = size if columns is None else columns
    if not is_integer(columns) or not 0 <= columns <= size:
        raise ValueError(
            f"`columns` must be from 0 to the order, {size}. "
            f"Received: columns={columns}"
        )
    reflectors = wide_tensor("reflectors", reflectors)
    rows = scaled_rows(reflector_rows(reflectors, size))
    all_of_them = rows.shape[0] == size
    # Those of the last coordinates do not change the columns before. That of a single
    # entry is left to the end.
    count = min(rows.shape[0], columns, size - 1)
    matrix = ops.eye(size - count, columns - count, dtype=reflectors.dtype)
    for first in reversed(range(0, count, _BLOCK)):
        end = min(first + _BLOCK, count)
        matrix = _reflect(rows[first:end, first:], _bordered(matrix, end - first))
    if not all_of_them or columns < size:
        return matrix
    # 1 at zero; and of a sign nothing is the gradient, not rounding, of which
    # optimizers make something.
    sign = ops.sign(ops.sign(reflectors[-1:]) + 0.5)
    ones = ops.ones((size - 1,), dtype=reflectors.dtype)
    return matrix * ops.concatenate([ones, sign])


def householder_inverse(matrix: np.ndarray) -> np.ndarray:
    """Finds the `n` reflectors whose product is a given orthogonal matrix.

    Every orthogonal matrix has some, of either determinant, which the sign in the
    last place decides: `det W = (-1)^(n-1) sign(u_1)`, as none of those that are
    returned is zero. A product of fewer reflectors, `m < n`, is determined by its
    first `m` columns and has the determinant `(-1)^m`; these matrices have no inverse
    here, as finding them from a matrix that has been rounded is ill-conditioned.

    Args:
        matrix: Real array of shape `(n, n)`, orthogonal up to `100 n` times the
            rounding unit of its dtype; the nearest orthogonal matrix is used.

    Returns:
        The packed reflectors, an array of shape `(n (n + 1) / 2,)`, float64, each of
        length 1.

    Raises:
        ValueError: If the matrix is not orthogonal.

    Example:
    >>> householder_inverse(np.array([[0.0, 1.0], [1.0, 0.0]]))
    array([-0.70710678,  0.70710678,  1.        ])
    """
    return frame_reflectors(nearest_orthogonal(matrix))


def frame_reflectors(frame: np.ndarray) -> np.ndarray:
    """Finds the `p` reflectors whose product has given first columns.

    Args:
        frame: Array of shape `(n, p)` with orthonormal columns, `p <= n`, float64.

    Returns:
        The packed reflectors, an array of shape `(n p - p (p - 1) / 2,)`, each of
        length 1.

    Example:
    >>> frame_reflectors(np.array([[0.0], [1.0]]))
    array([-0.70710678,  0.70710678])
    """
    rest = frame
    reflectors = []
    for _ in range(frame.shape[1]):
        reflector = _reflector(rest[:, 0])
        reflectors.append(reflector)
        rest = rest - 2 * np.outer(reflector, reflector @ rest)
        rest = rest[1:, 1:]
    return np.concatenate(reflectors)


def _reflector(column: np.ndarray) -> np.ndarray:
    """The reflector of length 1 that takes a column of length 1 to `e_1`.

    Where the column is `e_1` already, that is any orthogonal to it.
    """
    head, tail = column[0], column[1:]
    if not tail.size:
        return np.where(column < 0, -1.0, 1.0)
    length = np.linalg.norm(tail)
    reflector = column.copy()
    if head <= 0:
        reflector[0] -= 1.0
    elif length > 0:
        # `(head - 1) / length`, which rounding would spoil where `head` is near 1.
        reflector[0] = -length / (1 + head)
        reflector[1:] = tail / length
    else:
        reflector[:2] = 0.0, 1.0
    return reflector / np.linalg.norm(reflector)


@keras.saving.register_keras_serializable(package="keras_ortho")
class Householder(Parametrization):
    """Products of Householder reflectors, `householder_product` transposed: oRNN's.

    Args:
        reflections: Number of reflectors, an int in `1 .. n`. With all of them every
            orthogonal matrix can be made. Default: `None`, all.

    Example:
    >>> [variable.shape for variable in Householder(16).variables(128)]
    [(1928,)]
    """

    takes = "reflectors"

    def __init__(self, reflections: int | None = None) -> None:
        self.reflections = reflections

    def check(self, size: int) -> None:
        """Checks the number of reflectors."""
        check_reflections(self.reflections, size)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the packed reflectors."""
        reflections = check_reflections(self.reflections, size)
        initializer = unit_length(initializer or NormalReflectors(), size)
        shape = (num_reflector_entries(size, reflections),)
        return [FreeVariable("reflectors", shape, initializer)]

    def matrix(self, *values: Tensor) -> Tensor:
        """Multiplies the reflectors."""
        (reflectors,) = values
        size = reflector_size(reflectors.shape[0], self.reflections)
        return ops.transpose(householder_product(reflectors, size))

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds the reflectors, where there are all of them."""
        size = len(matrix)
        check_invertible((check_reflections(self.reflections, size),), size)
        return (householder_inverse(np.transpose(matrix)),)
