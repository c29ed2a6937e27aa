"""Products of Householder reflectors, `H_n(u_n) H_{n-1}(u_{n-1}) ...`, in WY form.

`H_k(u)` is the reflection `I - 2 u u^T / u^T u` of the last `k` of `n` coordinates. All
reflectors are packed into one vector, the longest first. A zero reflector gives the
identity. `H_1(u)` is the sign of `u`, and 1 at zero, as in oRNN, rather than always -1:
with `n` reflectors, every orthogonal matrix is a product of nonzero ones.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import keras
import numpy as np
from keras import ops

from keras_ortho.backend import with_gradient
from keras_ortho.backend.precision import wide_dtype, wide_tensor
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check, is_integer
from keras_ortho.parametrizations.arithmetic import (
    divide,
    nearest_orthogonal,
    placed,
    positions,
    upper_entries,
)
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.free_initializers import FreeInitializer, SeedOnly

# Number of reflectors in a block. In the worst case, when all `m` reflectors are alike,
# the error of a single block grows with m^2, that of several blocks only with m.
_BLOCK = 32


def check_reflections(reflections: Any, size: int) -> int:
    """Checks a number of reflectors."""
    count = size if reflections is None else reflections
    if not is_integer(count) or not 1 <= count <= size:
        raise ValueError(
            f"`reflections` must be an int between 1 and {size}, or None for all, or, "
            f"of two factors, a pair of these. Received: reflections={reflections!r}"
        )
    return int(count)


def check_pair(reflections: Any, size: int) -> tuple[int, int]:
    """Checks the numbers of reflectors of two factors."""
    pair = isinstance(reflections, list | tuple) and len(reflections) == 2
    left, right = reflections if pair else (reflections, reflections)
    return check_reflections(left, size), check_reflections(right, size)


def check_invertible(reflections: tuple[int, ...], size: int) -> None:
    """Checks that there are enough reflectors for an inverse map."""
    wanted = f"be {size} or None if a matrix is given: fewer cannot make every one"
    check(min(reflections) >= size, "reflections", wanted, f"reflections={reflections}")


def num_reflector_entries(size: int, reflections: int) -> int:
    """Returns the number of entries of the packed reflectors."""
    return reflections * size - reflections * (reflections - 1) // 2


def reflector_rows(reflectors: Tensor, size: int) -> Tensor:
    """Unpacks reflectors into the rows of a matrix, with leading zeros."""
    entries = reflectors.shape[0]
    # Not with `in`, which fails for the symbolic sizes of PyTorch's compiler.
    counts = range(1, size + 1)
    fitting = [m for m in counts if num_reflector_entries(size, m) == entries]
    wanted = f"have n + (n - 1) + ... entries, for the order n={size}"
    received = f"reflectors.shape={tuple(reflectors.shape)}"
    check(len(reflectors.shape) == 1 and fitting, "reflectors", wanted, received)
    return placed(reflectors, positions(fitting[0], size))


def scaled_rows(rows: Tensor) -> Tensor:
    """Scales the largest modulus in each row to 1, so that squares stay in range."""
    largest = ops.stop_gradient(ops.max(ops.abs(rows), axis=1, keepdims=True))
    return divide(rows, largest)


@keras.saving.register_keras_serializable(package="keras_ortho")
class NormalReflectors(FreeInitializer, SeedOnly, keras.initializers.RandomNormal):
    """Initializer for reflectors with uniformly distributed directions, as in oRNN.

    The entries are standard normal. A cell scales each reflector to norm 1.

    Args:
        seed: Int or `keras.random.SeedGenerator`. Default: `None`, a random seed.

    Example:
    >>> reflectors = NormalReflectors(seed=0)((3976,))

    Reference:
    [Mhammedi et al., 2017](https://proceedings.mlr.press/v70/mhammedi17a.html)
    """

    makes = "reflectors"
    settings: ClassVar[Mapping[str, Any]] = {"mean": 0.0, "stddev": 1.0}


@keras.saving.register_keras_serializable(package="keras_ortho")
class UniformReflectors(FreeInitializer, SeedOnly, keras.initializers.RandomUniform):
    """Initializer for reflectors with uniform entries, as in the code of svdRNN.

    The entries are uniform on (-1, 1). A layer scales each reflector to norm 1.

    Args:
        seed: Integer or `keras.random.SeedGenerator`. Default: `None`, a random seed.

    Example:
    >>> reflectors = UniformReflectors(seed=0)((3976,))

    Reference:
    [Zhang et al., 2018](https://proceedings.mlr.press/v80/zhang18g.html)
    """

    makes = "reflectors"
    settings: ClassVar[Mapping[str, Any]] = {"minval": -1.0, "maxval": 1.0}


def unit_length(initializer: Any, size: int) -> Callable[..., Tensor]:
    """Makes an initializer for packed reflectors of norm 1.

    The matrix does not depend on their lengths, but the steps of an optimizer do.
    """

    def initialize(shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        values = initializer(shape, dtype=dtype)
        rows = scaled_rows(reflector_rows(ops.cast(values, wide_dtype(dtype)), size))
        rows = divide(rows, ops.sqrt(ops.sum(rows * rows, axis=1, keepdims=True)))
        return ops.cast(upper_entries(rows), values.dtype)

    return initialize


def _forward(gram: Tensor) -> tuple[Tensor, Tensor]:
    # A zero reflector may have any length on the diagonal.
    lengths = ops.diagonal(gram)
    lengths = ops.where(lengths > 0, lengths, ops.ones_like(lengths))
    half = 0.5 * ops.diag(lengths) + ops.triu(gram, 1)
    identity = ops.eye(gram.shape[0], dtype=gram.dtype)
    inverse = ops.solve_triangular(half, identity, lower=False)
    return inverse, inverse


def _backward(inverse: Tensor, upstream: Tensor) -> tuple[Tensor]:
    # dT = -T dS T: the saved inverse replaces further triangular solves.
    transpose = ops.transpose(inverse)
    product = ops.matmul(ops.matmul(transpose, upstream), transpose)
    return (-ops.triu(product, 1) - 0.5 * ops.diag(ops.diagonal(product)),)


# T = S^-1, where S is the upper triangle of the Gram matrix with half its diagonal, so
# that `S + S^T = Y Y^T`, which makes the product orthogonal.
_wy_inverse = with_gradient(_forward, _backward)


def _reflect(rows: Tensor, matrix: Tensor) -> Tensor:
    """Applies a block of reflections of all coordinates to a matrix, from the left."""
    inverse = _wy_inverse(ops.matmul(rows, ops.transpose(rows)))
    product = ops.matmul(ops.matmul(inverse, rows), matrix)
    return matrix - ops.matmul(ops.transpose(rows), product)


def _bordered(matrix: Tensor, count: int) -> Tensor:
    """Returns the block-diagonal matrix `diag(I, matrix)`, `I` of order `count`."""
    identity = ops.eye(count, count + matrix.shape[1], dtype=matrix.dtype)
    return ops.concatenate([identity, ops.pad(matrix, ((0, 0), (count, 0)))])


def householder_product(
    reflectors: Tensor, size: int, columns: int | None = None
) -> Tensor:
    """Multiplies packed reflectors to a matrix `(n, n)`, or to its leading columns.

    T. Joffrain et al., "Accumulating Householder transformations, revisited", ACM
    Trans. Math. Softw. 32, 2006, has the WY form.
    """
    columns = size if columns is None else columns
    reflectors = wide_tensor("reflectors", reflectors)
    rows = scaled_rows(reflector_rows(reflectors, size))
    # Reflectors of the last coordinates do not change the columns before these. A
    # reflector with a single entry is applied at the end.
    count = min(rows.shape[0], columns, size - 1)
    matrix = ops.eye(size - count, columns - count, dtype=reflectors.dtype)
    for first in reversed(range(0, count, _BLOCK)):
        end = min(first + _BLOCK, count)
        matrix = _reflect(rows[first:end, first:], _bordered(matrix, end - first))
    if rows.shape[0] < size or columns < size:
        return matrix
    # Optimizers such as Adam would scale up a gradient of rounding errors.
    sign = ops.sign(ops.sign(reflectors[-1:]) + 0.5)
    ones = ops.ones((size - 1,), dtype=reflectors.dtype)
    return matrix * ops.concatenate([ones, sign])


def frame_reflectors(frame: np.ndarray) -> np.ndarray:
    """Finds the `p` reflectors whose product has the given first columns."""
    reflectors = []
    for _ in range(frame.shape[1]):
        # Maps the first column to `e_1`, until the identity is left.
        reflector = _reflector(frame[:, 0])
        reflectors.append(reflector)
        frame = (frame - 2 * np.outer(reflector, reflector @ frame))[1:, 1:]
    return np.concatenate(reflectors)


def _reflector(column: np.ndarray) -> np.ndarray:
    """Finds a unit reflector that maps a column of norm 1 to `e_1`."""
    head, tail = column[0], column[1:]
    if not tail.size:
        return np.where(column < 0, -1.0, 1.0)
    length = np.linalg.norm(tail)
    reflector = column.copy()
    if head <= 0:
        reflector[0] -= 1.0
    elif length > 0:
        # Equal to `(head - 1) / length`, which cancels if `head` is close to 1.
        reflector[0] = -length / (1 + head)
        reflector[1:] = tail / length
    else:
        reflector[:2] = 0.0, 1.0
    return reflector / np.linalg.norm(reflector)


@keras.saving.register_keras_serializable(package="keras_ortho")
class Householder(Parametrization):
    """Transposed products of Householder reflectors, as in oRNN.

    The variable has the reflectors of all `n` coordinates, of the last `n - 1`, and so
    on, one after the other. Their lengths do not matter; a zero reflector is the
    identity, and one with a single entry the sign of that entry. Fewer than `n`
    reflectors have no inverse, as finding them is ill-conditioned.

    Args:
        reflections: Number of reflectors, an int in `1 .. n`. Default: `None`, `n`,
            which reach every orthogonal matrix.

    Example:
    >>> [variable.shape for variable in Householder(16).variables(128)]
    [(1928,)]

    Reference:
    [Mhammedi et al., 2017](https://proceedings.mlr.press/v70/mhammedi17a.html)
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
        entries, m = reflectors.shape[0], self.reflections
        if m is None:
            size = (math.isqrt(1 + 8 * entries) - 1) // 2
        else:
            size = (2 * entries + m * (m - 1)) // (2 * m)
        return ops.transpose(householder_product(reflectors, size))

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds the reflectors, if their number is `n`."""
        orthogonal = nearest_orthogonal(matrix)
        size = len(orthogonal)
        check_invertible((check_reflections(self.reflections, size),), size)
        return (frame_reflectors(orthogonal.T),)
