"""Rebasing: parametrizes a matrix relative to a base matrix that follows the training.

    W = B M(v - o)

with the map `M` of another parametrization, its trained variables `v`, their origin `o`
and an orthogonal or unitary base `B`. Moving the base means setting `B` to `W M(0)*`
and `o` to `v`: `W` does not change, and `v - o` is zero again, where the map distorts
the space of the variables least and rounding errors are smallest. Lezcano-Casado,
"Trivializations for gradient-based optimization on manifolds", NeurIPS 2019, calls this
dynamic trivialization.

The paper sets the variables themselves to zero. A layer cannot do so within a training
step, because only the optimizer may change trained variables. It moves the origin to
them instead.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend import eagerly
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_count
from keras_ortho.parametrizations.arithmetic import block
from keras_ortho.parametrizations.base import (
    FreeVariable,
    Parametrization,
    check_parametrization,
)
from keras_ortho.parametrizations.orthogonality import (
    nearest_orthogonal,
    nearest_unitary,
)


@dataclasses.dataclass(frozen=True)
class _Parts:
    """The variables of a `Rebased`, or their values."""

    base: Any  # `B`, or `[Re B | Im B]` for complex units.
    passes: Any  # Number of training passes since the base moved.
    inner: list[Any]  # Variables of the other parametrization.
    trained: list[int]  # Indices of the trained variables in `inner`.
    origins: list[Any]  # Origins of the trained variables.

    @property
    def near(self) -> list[Tensor]:
        """The variables, with `v - o` for `v`."""
        values = list(self.inner)
        for index, origin in zip(self.trained, self.origins, strict=True):
            values[index] = values[index] - origin
        return values

    @property
    def zero(self) -> list[Tensor]:
        """The variables, with zero for `v`."""
        return [
            ops.zeros_like(value) if index in self.trained else value
            for index, value in enumerate(self.inner)
        ]


@keras.saving.register_keras_serializable(package="keras_ortho")
class Rebased(Parametrization):
    """Matrices of another parametrization, relative to a base that follows training.

    The matrix is `W = B M(v - o)`, with the map `M` of the other parametrization, its
    trained variables `v`, their origin `o` and the base `B`. Initially `B` is the
    identity and `o` is zero, so a layer starts as it would without a base. A layer's
    `rebase` method and the callback `keras_ortho.training_callbacks.Rebase` move the
    base to `W M(0)*` and set `v` and `o` to zero: `W` does not change. With
    `rebase_every`, the layer moves its base itself, within the compiled training step,
    and sets `o` to `v` instead.

    The optimizer keeps its averages of the gradients, as in the authors' code.
    Regularizers and weight decay act on `v`. If `rebase` moves the base, they pull `W`
    toward the base; if the layer moves it itself, they pull `W` back along its path.

    Args:
        parametrization: `ScaledCayley`, `ScaledCayleyUnitary`, `SkewExponential`, or a
            parametrization of your own that sets `full_at_zero`: variables near zero
            must reach every orthogonal (or unitary) matrix near `M(0)`.
        rebase_every: Number of training passes after which the base moves, a positive
            integer. A layer that is called twice in a step makes two passes. Default:
            `None`, which means only when `rebase` is called.

    Raises:
        ValueError: If `parametrization` is not one of these, or `rebase_every` is not a
            positive integer.

    Example:
    >>> from keras_ortho.parametrizations import ScaledCayley
    >>> kind = Rebased(ScaledCayley(), rebase_every=100)
    >>> [variable.name for variable in kind.variables(4)][:3]
    ['recurrent_base', 'recurrent_passes', 'recurrent_skew']

    Reference:

    - [Lezcano-Casado, 2019](https://arxiv.org/abs/1909.09501), algorithm 1
    """

    has_base = True

    def __init__(self, parametrization: Any, rebase_every: int | None = None) -> None:
        self.parametrization = check_parametrization(parametrization)
        if not self.parametrization.full_at_zero:
            raise ValueError(
                "Near zero, `parametrization` must reach every matrix near that of "
                "zero, as `ScaledCayley`, `ScaledCayleyUnitary` and `SkewExponential` "
                f"do. Received: {type(self.parametrization).__name__}"
            )
        if rebase_every is not None:
            rebase_every = check_count("rebase_every", rebase_every)
        self.rebase_every = rebase_every
        self.is_complex = self.parametrization.is_complex
        self.takes = self.parametrization.takes

    def check(self, size: int) -> None:
        """Checks the order, as the other parametrization does."""
        self.parametrization.check(size)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the base, the passes since it moved, the variables and the origins."""
        shape = (size, 2 * size if self.is_complex else size)
        inner = self.parametrization.variables(size, initializer)
        zeros = keras.initializers.Zeros()
        identity = keras.initializers.Identity()
        return [
            # Exact, because each move rounds the base again.
            _fixed("recurrent_base", shape, identity, exact=True),
            _fixed("recurrent_passes", (), zeros, dtype="int32"),
            *inner,
            *(_fixed(f"{v.name}_origin", v.shape, zeros) for v in inner if v.trainable),
        ]

    def matrix(self, *values: Tensor) -> Tensor:
        """Computes `W = B M(v - o)`."""
        return self._full(self._rows(self._parts(values)))

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds the base for any orthogonal (or unitary) matrix; variables are zero."""
        nearest = nearest_unitary if self.is_complex else nearest_orthogonal
        matrix = nearest(matrix)
        with eagerly():
            values = [
                variable.initializer(variable.shape, dtype=variable.dtype or "float64")
                for variable in self.variables(len(matrix), keras.initializers.Zeros())
            ]
            parts = self._parts(values)
            start = ops.convert_to_numpy(self.parametrization.matrix(*parts.zero))
            inner = [ops.convert_to_numpy(value) for value in parts.zero]
            passes, *origins = map(ops.convert_to_numpy, (parts.passes, *parts.origins))
        if self.is_complex:
            matrix = np.concatenate([matrix.real, matrix.imag], axis=1)
        return (matrix @ start.T, passes, *inner, *origins)

    def distance(self, matrix: np.ndarray) -> float:
        """Measures the distance that the other parametrization does."""
        return self.parametrization.distance(matrix)

    def sample(self, size: int, seed: int | None = None) -> np.ndarray:
        """Draws a matrix from the other parametrization."""
        return self.parametrization.sample(size, seed)

    def begin_training_pass(self, variables: Sequence[Any], dtype: str) -> None:
        """Moves the base and the origins if that is due, and counts the pass."""
        if self.rebase_every is None:
            return
        values = self.values(variables, dtype)
        parts = self._parts([ops.stop_gradient(value) for value in values])
        due = parts.passes >= self.rebase_every
        base, *origins = ops.cond(
            due,
            lambda: [self._moved(parts), *(parts.inner[i] for i in parts.trained)],
            lambda: [parts.base, *parts.origins],
        )
        kept = self._parts(variables)
        kept.base.assign(base)
        kept.passes.assign(ops.where(due, 1, parts.passes + 1))
        for variable, origin in zip(kept.origins, origins, strict=True):
            variable.assign(origin)

    def rebase(self, variables: Sequence[Any], dtype: str) -> None:
        """Moves the base to the matrix, and sets the trained variables to zero."""
        base = self._moved(self._parts(self.values(variables, dtype)))
        parts = self._parts(variables)
        parts.base.assign(base)
        trained = [parts.inner[index] for index in parts.trained]
        for variable in (parts.passes, *trained, *parts.origins):
            variable.assign(ops.zeros(variable.shape, dtype=variable.dtype))

    def _moved(self, parts: _Parts) -> Tensor:
        """Returns the new base `W M(0)*`."""
        start = self.parametrization.matrix(*parts.zero)
        rows = ops.matmul(self._rows(parts), ops.transpose(start))
        # One Newton-Schulz step, so that rounding errors do not accumulate.
        full = self._full(rows)
        error = rows - ops.matmul(ops.matmul(rows, ops.transpose(full)), full)
        return rows + 0.5 * error

    def _rows(self, parts: _Parts) -> Tensor:
        """Returns `W`, or `[Re W | Im W]` for complex units."""
        return ops.matmul(parts.base, self.parametrization.matrix(*parts.near))

    def _full(self, rows: Tensor) -> Tensor:
        return block(rows) if self.is_complex else rows

    def _parts(self, values: Sequence[Any]) -> _Parts:
        base, passes, *rest = values
        # `Zeros` draws no random numbers.
        inner = self.parametrization.variables(
            base.shape[0], keras.initializers.Zeros()
        )
        trained = [index for index, v in enumerate(inner) if v.trainable]
        return _Parts(base, passes, rest[: len(inner)], trained, rest[len(inner) :])


def _fixed(
    name: str, shape: tuple[int, ...], initializer: Any, **settings: Any
) -> FreeVariable:
    return FreeVariable(name, shape, initializer, trainable=False, **settings)


def rebased(kind: Parametrization, rebase_every: int | None) -> Parametrization:
    """Wraps a parametrization in `Rebased`, unless `rebase_every` is `None`."""
    return kind if rebase_every is None else Rebased(kind, rebase_every)
