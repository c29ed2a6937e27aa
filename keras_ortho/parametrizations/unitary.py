"""Unitary matrices: of restricted capacity, and any that are stored as they are."""

import contextlib
import contextvars
import warnings
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend.elementary import cos, sin
from keras_ortho.backend.precision import wide_dtype, wide_tensor
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check
from keras_ortho.parametrizations.arithmetic import (
    adjoint,
    block,
    divide,
    nearest_unitary,
    product,
    random_unitary,
    turn,
)
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.free_initializers import UniformPhases
from keras_ortho.parametrizations.householder import scaled_rows


def _reflect(rows: Tensor, vector: Tensor) -> Tensor:
    """Computes `M (I - 2 v v* / |v|^2)` as a rank-one update of `M`."""
    real, imaginary = ops.split(vector, 2)
    # The block of the row v*, whose transpose is that of the column v.
    row = block(ops.concatenate([real, -imaginary])[None])
    along = ops.matmul(rows, ops.transpose(row))
    along = divide(2.0 * along, ops.sum(vector * vector))
    return rows - ops.matmul(along, row)


def restricted_unitary(
    phases: Tensor, reflectors: Tensor, permutation: Tensor
) -> Tensor:
    """Computes the real form of `D_1 F R_1 P D_2 F^-1 R_2 D_3` for row vectors."""
    phases = wide_tensor("phases", phases)
    reflectors = wide_tensor("reflectors", reflectors)
    permutation = ops.convert_to_tensor(permutation)
    size = permutation.shape[0]
    reflectors = scaled_rows(reflectors)
    cosine, sine = cos(phases), sin(phases)
    transform = np.fft.fft(np.eye(size), norm="ortho")
    fourier = ops.cast(np.hstack([transform.real, transform.imag]), phases.dtype)
    rows = turn(fourier, cosine[0][:, None], sine[0][:, None])
    rows = _reflect(rows, reflectors[0])
    both = ops.concatenate([permutation, permutation + size])
    rows = ops.take(rows, both, axis=1)
    rows = turn(rows, cosine[1], sine[1])
    rows = product(rows, adjoint(fourier))
    rows = _reflect(rows, reflectors[1])
    return block(turn(rows, cosine[2], sine[2]))


@keras.saving.register_keras_serializable(package="keras_ortho")
class UnitaryComposition(UniformPhases):
    """Initializer for the factors of the uRNN's unitary matrix, or for the matrix.

    The phases are uniform, the reflectors are Glorot-uniform as a matrix of shape
    `(2, 2n)`, and all permutations are equally likely. The shape tells which is drawn.

    Args:
        minval: Lower bound of the phases, in radians. Default: -pi.
        maxval: Upper bound of the phases, in radians. Default: pi.
        seed: Integer or `keras.random.SeedGenerator`. Default: `None`, a random seed.

    Example:
    >>> matrix = UnitaryComposition(seed=0)((2, 8, 8))  # its real and imaginary part

    Reference:
    [Arjovsky et al., 2016](https://proceedings.mlr.press/v48/arjovsky16.html),
    section 4.1 and the released code
    """

    makes = "a unitary composition"
    seeds = 3

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        """Draws phases `(3, n)`, reflectors `(2, 2n)`, a permutation or a matrix.

        The permutation has the shape `(n,)` and an integer dtype or `None`; of the
        matrix, the real and imaginary parts are drawn, `(2, n, n)`.
        """
        dtype = None if dtype is None else keras.backend.standardize_dtype(dtype)
        kind = (len(shape), *shape[:1])
        if kind == (2, 3):
            return super().__call__(shape, dtype=dtype)
        if kind == (2, 2) and shape[1] % 2 == 0:
            return keras.initializers.GlorotUniform(self._seed(1))(shape, dtype=dtype)
        if len(shape) == 1 and (dtype is None or "int" in dtype):
            numbers = ops.arange(shape[0], dtype="int32")
            drawn = keras.random.shuffle(numbers, seed=self._seed(2))
            return ops.cast(drawn, dtype or "int32")
        fits = kind == (3, 2) and shape[1] == shape[2]
        wanted = "be (3, n), (2, 2n), (2, n, n), or (n,) for integers"
        check(fits, "shape", wanted, f"shape={shape}, dtype={dtype}")
        size = shape[1]
        made = wide_dtype(dtype)
        kernel = restricted_unitary(
            self((3, size), made), self((2, 2 * size), made), self((size,), "int32")
        )
        parts = ops.stack(ops.split(kernel[:size], 2, axis=1))
        return ops.cast(parts, dtype or keras.config.floatx())

    def _seed(self, offset: int) -> Any:
        # An int seed gives the same numbers at each call, so each factor needs its own.
        return self.seed + offset if isinstance(self.seed, int) else self.seed


@keras.saving.register_keras_serializable(package="keras_ortho")
class RestrictedUnitary(Parametrization):
    """Unitary matrices `D_1 F R_1 P D_2 F^-1 R_2 D_3`, as in the uRNN, a small subset.

    They have diagonals of phases `D`, the unitary discrete Fourier transform `F`,
    complex Householder reflections `R = I - 2 v v* / |v|^2` and a permutation `P`. The
    variables are the angles of the diagonals, `[Re v | Im v]` of the reflections, of
    any norm, and the permutation: entry `j` of `z P` is entry `permutation[j]` of `z`.

    Example:
    >>> [variable.shape for variable in RestrictedUnitary().variables(8)]
    [(3, 8), (2, 16), (8,)]

    Reference:
    [Arjovsky et al., 2016](https://proceedings.mlr.press/v48/arjovsky16.html),
    equation 6
    """

    is_complex = True
    takes = "a unitary composition"
    matrix = staticmethod(restricted_unitary)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the phases, the reflectors and the permutation."""
        make = initializer or UnitaryComposition()
        return [
            FreeVariable("recurrent_phases", (3, size), make),
            FreeVariable("recurrent_reflectors", (2, 2 * size), make),
            # `"int"` is the backend's integer dtype that a GPU can store.
            FreeVariable("permutation", (size,), make, trainable=False, dtype="int"),
        ]

    def sample(self, size: int, seed: int | None = None) -> np.ndarray:
        """Draws a matrix from the paper's initial distribution."""
        parts = UnitaryComposition(seed=seed)((2, size, size), "float64")
        real, imaginary = ops.convert_to_numpy(parts)
        return real + 1j * imaginary


_KEPT = contextvars.ContextVar("kept_unitary", default=False)


@contextlib.contextmanager
def keeping_unitary() -> Iterator[None]:
    """Marks the updates in its context as ones that keep unitary matrices unitary."""
    token = _KEPT.set(True)
    try:
        yield
    finally:
        _KEPT.reset(token)


@keras.saving.register_keras_serializable(package="keras_ortho")
class KeptUnitary(keras.constraints.Constraint):
    """Constraint that warns if the optimizer does not keep a unitary matrix unitary.

    Keras's optimizers call it after each update or, if compiled, once during tracing.
    """

    def __call__(self, value: Any) -> Any:
        """Warns, unless in `keeping_unitary`."""
        if not _KEPT.get():
            warnings.warn(
                "The optimizer does not keep the recurrent matrix of `FullURNN`, "
                "`recurrent_unitary`, unitary. Compile the model with "
                "`keras_ortho.optimizers.paper_optimizer()`, which uses "
                "`keras_ortho.optimizers.StiefelDescent` for it, or use `ScuRNN`, "
                "which any optimizer can train.",
                stacklevel=2,
            )
        return value


@keras.saving.register_keras_serializable(package="keras_ortho")
class FullUnitary(Parametrization):
    """All unitary matrices, stored directly, as in the full-capacity uRNN.

    The optimizer must keep the matrix unitary, as
    `keras_ortho.optimizers.StiefelDescent` does; the first step of any other one issues
    a warning.

    Args:
        half_gradient: Whether the gradient with respect to the matrix omits what
            reaches it through the imaginary parts of the state. Default: `False`.

    Example:
    >>> FullUnitary().variables(8)[0].shape
    (2, 8, 8)
    """

    is_complex = True
    takes = "a unitary composition"
    sample = staticmethod(random_unitary)

    def __init__(self, half_gradient: bool = False) -> None:
        self.half_gradient = half_gradient

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Returns one variable, the real and the imaginary part of the matrix."""
        shape, make = (2, size, size), initializer or UnitaryComposition()
        kept = KeptUnitary()
        return [
            FreeVariable(
                "recurrent_unitary", shape, make, group="unitary", constraint=kept
            )
        ]

    def matrix(self, *values: Tensor) -> Tensor:
        """Returns the matrix in its real form."""
        (parts,) = values
        rows = ops.concatenate([parts[0], parts[1]], axis=1)
        if not self.half_gradient:
            return block(rows)
        lower = block(ops.stop_gradient(rows))[rows.shape[0] :]
        return ops.concatenate([rows, lower])

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Returns the real and imaginary parts of any unitary matrix."""
        unitary = nearest_unitary(matrix)
        return (np.stack([unitary.real, unitary.imag]),)
