"""Householder reflectors packed into a vector: unpacking, scaling, initializers.

A reflector of the last `k` of `n` coordinates has `k` entries. The longest comes first,
with `n` entries, then one with `n - 1`, and so on.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import keras
import numpy as np
from keras import ops

from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import is_integer
from keras_ortho.parametrizations.free import FreeInitializer, SeedOnly


def check_reflections(reflections: Any, size: int) -> int:
    """Checks a number of reflectors."""
    if reflections is None:
        return size
    if not is_integer(reflections) or not 1 <= reflections <= size:
        raise ValueError(
            f"`reflections` must be an int between 1 and {size}, or None for all. "
            f"Received: reflections={reflections!r}"
        )
    return int(reflections)


def check_pair(reflections: Any, size: int) -> tuple[int, int]:
    """Checks the numbers of reflectors of two factors."""
    if not isinstance(reflections, list | tuple):
        reflections = (reflections, reflections)
    if len(reflections) != 2:
        raise ValueError(
            "`reflections` must be an int, for both factors, or a pair of them. "
            f"Received: reflections={reflections!r}"
        )
    left, right = (check_reflections(number, size) for number in reflections)
    return left, right


def check_invertible(reflections: tuple[int, ...], size: int) -> None:
    """Checks that there are enough reflectors for an inverse map."""
    if min(reflections) < size:
        raise ValueError(
            f"If a matrix is given, `reflections` must be {size} or None: fewer cannot "
            f"represent every matrix. Received: reflections={reflections}"
        )


def num_reflector_entries(size: int, reflections: int) -> int:
    """Returns the number of entries of the packed reflectors."""
    return reflections * size - reflections * (reflections - 1) // 2


def reflector_size(entries: int, reflections: int | None) -> int:
    """Returns the order of the matrix, given the number of its reflectors' entries."""
    if reflections is None:
        return (math.isqrt(1 + 8 * entries) - 1) // 2
    return (entries + reflections * (reflections - 1) // 2) // reflections


def reflector_rows(reflectors: Tensor, size: int) -> Tensor:
    """Unpacks reflectors into the rows of a matrix, with leading zeros."""
    entries = reflectors.shape[0]
    # Not with `in`, which fails for the symbolic sizes of PyTorch's compiler.
    counts = range(1, size + 1)
    fitting = [m for m in counts if num_reflector_entries(size, m) == entries]
    if len(reflectors.shape) != 1 or not fitting:
        raise ValueError(
            "`reflectors` must have n + (n - 1) + ... entries, for the order "
            f"n={size}. Received: reflectors.shape={tuple(reflectors.shape)}"
        )
    rows, columns = np.triu_indices(fitting[0], 0, size)
    position = np.zeros((rows[-1] + 1, size), "int32")
    position[rows, columns] = np.arange(1, entries + 1)
    zero = ops.zeros((1,), dtype=reflectors.dtype)
    return ops.take(ops.concatenate([zero, reflectors]), position)


def scaled_rows(rows: Tensor) -> Tensor:
    """Scales the largest modulus in each row to 1, so that squares stay in range."""
    largest = ops.stop_gradient(ops.max(ops.abs(rows), axis=1, keepdims=True))
    return rows / ops.where(largest > 0, largest, ops.ones_like(largest))


def unit_rows(rows: Tensor) -> Tensor:
    """Scales rows to norm 1, without overflow or underflow."""
    rows = scaled_rows(rows)
    square = ops.sum(rows * rows, axis=1, keepdims=True)
    return rows / ops.sqrt(ops.where(square > 0, square, ops.ones_like(square)))


def unit_reflectors(reflectors: Tensor, size: int) -> Tensor:
    """Scales packed reflectors to norm 1, which does not change their product."""
    rows = unit_rows(reflector_rows(reflectors, size))
    row, column = np.triu_indices(rows.shape[0], 0, size)
    position = (row * size + column).astype("int32")
    return ops.take(ops.reshape(rows, (-1,)), position)


@keras.saving.register_keras_serializable(package="keras_ortho")
class NormalReflectors(FreeInitializer, SeedOnly, keras.initializers.RandomNormal):
    """Initializer for reflectors with uniformly distributed directions, as in oRNN.

    The entries are standard normal. A cell scales each reflector to norm 1.

    Args:
        seed: Integer or `keras.random.SeedGenerator`. Default: `None`, a random seed.

    Example:
    >>> reflectors = NormalReflectors(seed=0)((3976,))

    Reference:

    - [Mhammedi et al., 2017](https://proceedings.mlr.press/v70/mhammedi17a.html)
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

    - [Zhang et al., 2018](https://proceedings.mlr.press/v80/zhang18g.html)
    """

    makes = "reflectors"
    settings: ClassVar[Mapping[str, Any]] = {"minval": -1.0, "maxval": 1.0}


def unit_length(initializer: Any, size: int) -> Callable[..., Tensor]:
    """Makes an initializer for reflectors of norm 1.

    The matrix does not depend on the lengths of the reflectors, but the steps of an
    optimizer do.
    """

    def initialize(shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        values = initializer(shape, dtype=dtype)
        scaled = unit_reflectors(ops.cast(values, wide_dtype(dtype)), size)
        return ops.cast(scaled, values.dtype)

    return initialize
