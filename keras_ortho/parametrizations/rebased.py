"""A matrix relative to a base that follows the training: dynamic trivialization."""

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


@keras.saving.register_keras_serializable(package="keras_ortho")
class Rebased(Parametrization):
    """Matrices of another parametrization, relative to a base that follows training.

    The matrix is `W = B M(v - o)`, with the map `M` of the other parametrization, its
    trained variables `v`, their origin `o` and the base `B`. Initially `B` is the
    identity and `o` is zero, so a layer starts as it would without a base. A layer's
    `rebase` method and the callback `keras_ortho.training_callbacks.Rebase` move the
    base to `W M(0)*` and set `v` and `o` to zero: `W` does not change. With
    `rebase_every`, the layer moves its base itself, within the compiled training step,
    and sets `o` to `v` instead. Regularizers and weight decay act on `v`.

    Args:
        parametrization: `ScaledCayley`, `ScaledCayleyUnitary`, `SkewExponential`, or a
            parametrization of your own that sets `full_at_zero`: variables near zero
            must reach every orthogonal (or unitary) matrix near `M(0)`.
        rebase_every: Number of training passes after which the base moves, a positive
            integer. A layer that is called twice in a step makes two passes. Default:
            `None`, which means only when `rebase` is called.

    Raises:
        ValueError: If an argument is not one of these.

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
        shape = (size, size * (1 + self.is_complex))
        inner = self.parametrization.variables(size, initializer)
        zeros = keras.initializers.Zeros()
        identity = keras.initializers.Identity()
        return [
            # Exact, because each move rounds the base again.
            FreeVariable(
                "recurrent_base", shape, identity, trainable=False, exact=True
            ),
            FreeVariable("recurrent_passes", (), zeros, trainable=False, dtype="int32"),
            *inner,
            *(
                FreeVariable(f"{v.name}_origin", v.shape, zeros, trainable=False)
                for v in inner
                if v.trainable
            ),
        ]

    def _split(self, values: Sequence[Any]) -> tuple[Any, list[Any], dict[int, Any]]:
        """Returns the base, the inner variables, and the origins by their indices."""
        base, _, *rest = values
        # `Zeros` draws no random numbers.
        inner = self.parametrization.variables(
            base.shape[0], keras.initializers.Zeros()
        )
        trained = [index for index, v in enumerate(inner) if v.trainable]
        origins = zip(trained, rest[len(inner) :], strict=True)
        return base, rest[: len(inner)], dict(origins)

    def matrix(self, *values: Tensor) -> Tensor:
        """Computes `W = B M(v - o)`."""
        base, inner, origins = self._split(values)
        near = [v - origins[i] if i in origins else v for i, v in enumerate(inner)]
        return self._full(ops.matmul(base, self.parametrization.matrix(*near)))

    def _full(self, rows: Tensor) -> Tensor:
        return block(rows) if self.is_complex else rows

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds the base for any orthogonal (or unitary) matrix; variables are zero."""
        nearest = nearest_unitary if self.is_complex else nearest_orthogonal
        matrix = nearest(matrix)
        with eagerly():
            values = [
                np.zeros(v.shape)
                if v.trainable
                else ops.convert_to_numpy(
                    v.initializer(v.shape, dtype=v.dtype or "float64")
                )
                for v in self.variables(len(matrix), keras.initializers.Zeros())
            ]
            start = self.matrix(*map(ops.convert_to_tensor, values))
        if self.is_complex:
            matrix = np.concatenate([matrix.real, matrix.imag], axis=1)
        return (matrix @ ops.convert_to_numpy(start).T, *values[1:])

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
        values = [ops.stop_gradient(v) for v in self.values(variables, dtype)]
        base, inner, origins = self._split(values)
        due = values[1] >= self.rebase_every
        # Only the optimizer may change trained variables in a training step, so the
        # origins move to them.
        moved = ops.cond(
            due,
            lambda: [self._moved(values), *(inner[i] for i in origins)],
            lambda: [base, *origins.values()],
        )
        kept = variables[0], *variables[-len(origins) :]
        for variable, value in zip(kept, moved, strict=True):
            variable.assign(value)
        variables[1].assign(ops.where(due, 1, values[1] + 1))

    def rebase(self, variables: Sequence[Any], dtype: str) -> None:
        """Moves the base to the matrix, and sets the trained variables to zero."""
        variables[0].assign(self._moved(self.values(variables, dtype)))
        _, inner, origins = self._split(variables)
        for variable in (variables[1], *(inner[i] for i in origins), *origins.values()):
            variable.assign(ops.zeros(variable.shape, dtype=variable.dtype))

    def _moved(self, values: Sequence[Tensor]) -> Tensor:
        """Returns the new base `W M(0)*`."""
        base, inner, origins = self._split(values)
        zero = [ops.zeros_like(v) if i in origins else v for i, v in enumerate(inner)]
        start = self.parametrization.matrix(*zero)
        rows = self.matrix(*values)[: base.shape[0]]
        rows = ops.matmul(rows, ops.transpose(start))
        # One Newton-Schulz step, so that rounding errors do not accumulate.
        full = self._full(rows)
        error = rows - ops.matmul(ops.matmul(rows, ops.transpose(full)), full)
        return rows + 0.5 * error


def rebased(kind: Parametrization, rebase_every: int | None) -> Parametrization:
    """Wraps a parametrization in `Rebased`, unless `rebase_every` is `None`."""
    return kind if rebase_every is None else Rebased(kind, rebase_every)
