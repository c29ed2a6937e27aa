"""Re-basing: a matrix near one that follows the training, its base.

    W = B M(v - o)

with the map `M` of another parametrization, its trained variables `v`, their origin `o`
and an orthogonal or unitary base `B`. To move the base is to let `B` be `W M(0)*` and
`o` be `v`: `W` stays, and the variables are again near zero, where the map turns the
space of its variables the least, and rounding harms it the least. Lezcano-Casado,
"Trivializations for gradient-based optimization on manifolds", NeurIPS 2019, calls this
dynamic trivialization.

There the variables themselves are set to zero. Within a training step no layer can do
that: its trained variables are the optimizer's to change. So the origin goes to them.
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
from keras_ortho.parametrizations.base import (
    FreeVariable,
    Parametrization,
    check_parametrization,
)
from keras_ortho.parametrizations.complex_rows import block
from keras_ortho.parametrizations.orthogonality import (
    nearest_orthogonal,
    nearest_unitary,
)


@dataclasses.dataclass(frozen=True)
class _Parts:
    """The variables of a `Rebased`, or their values.

    Attributes:
        base: `B`, of complex units its rows `[Re B | Im B]`.
        passes: How many passes of training the base has served.
        inner: Those of the other parametrization.
        trained: Where in `inner` those are that are trained.
        origins: The origins of these.
    """

    base: Any
    passes: Any
    inner: list[Any]
    trained: list[int]
    origins: list[Any]

    @property
    def near(self) -> list[Tensor]:
        """`v - o`."""
        values = list(self.inner)
        for index, origin in zip(self.trained, self.origins, strict=True):
            values[index] = values[index] - origin
        return values

    @property
    def zero(self) -> list[Tensor]:
        """Zero for `v`."""
        values = list(self.inner)
        for index in self.trained:
            values[index] = ops.zeros_like(values[index])
        return values


@keras.saving.register_keras_serializable(package="keras_ortho")
class Rebased(Parametrization):
    """The matrices of another parametrization, from a base that follows the training.

    The matrix is `W = B M(v - o)`, see the head of this module. At the start `B` is the
    identity and `o` is zero, so a layer begins as it would without a base. `rebase` of
    a layer moves the base to `W` and sets `v` and `o` to zero, and so does the callback
    `keras_ortho.training_callbacks.Rebase`; with `rebase_every` a layer moves its base
    by itself, within the compiled training step, and `o` instead of `v`.

    The optimizer goes on with its averages of the gradients, as in the authors' code.
    A regularizer and weight decay act on `v`: they draw `W` towards the base, where
    that is moved from outside, and back along the way it came, where it moves itself.

    Args:
        parametrization: `ScaledCayley`, `ScaledCayleyUnitary` or `SkewExponential`, or
            one of your own whose map near zero reaches every matrix near the one of
            zero, and says so as `full_at_zero`.
        rebase_every: After how many passes of training the base moves, a positive
            integer. A layer that is called twice in a step counts two. Default:
            `None`, never by itself.

    Raises:
        ValueError: If `parametrization` is another, or `rebase_every` out of its range.

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
                "`parametrization` must reach, near zero, every matrix near the one "
                "of zero, as `ScaledCayley`, `ScaledCayleyUnitary` and "
                "`SkewExponential` do. "
                f"Received: {type(self.parametrization).__name__}"
            )
        if rebase_every is not None:
            rebase_every = check_count("rebase_every", rebase_every)
        self.rebase_every = rebase_every
        self.is_complex = self.parametrization.is_complex
        self.takes = self.parametrization.takes

    def check(self, size: int) -> None:
        """Checks what the other parametrization checks."""
        self.parametrization.check(size)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the base, the passes since it moved, and the variables with origins."""
        shape = (size, 2 * size if self.is_complex else size)
        inner = self.parametrization.variables(size, initializer)
        zeros = keras.initializers.Zeros()
        identity = keras.initializers.Identity()
        return [
            # Each move rounds the base that the one before has left.
            _fixed("recurrent_base", shape, identity, exact=True),
            _fixed("recurrent_passes", (), zeros, dtype="int32"),
            *inner,
            *(_fixed(f"{v.name}_origin", v.shape, zeros) for v in inner if v.trainable),
        ]

    def matrix(self, *values: Tensor) -> Tensor:
        """Makes `W = B M(v - o)`."""
        return self._full(self._rows(self._parts(values)))

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Makes the base of it, whichever orthogonal, or unitary, matrix it is."""
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
        """Measures what the other parametrization measures."""
        return self.parametrization.distance(matrix)

    def sample(self, size: int, seed: int | None = None) -> np.ndarray:
        """Draws what the other parametrization draws."""
        return self.parametrization.sample(size, seed)

    def begin_training_pass(self, variables: Sequence[Any], dtype: str) -> None:
        """Moves the base and the origins, where that is due, and counts the pass."""
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
        """The base `W M(0)*`."""
        start = self.parametrization.matrix(*parts.zero)
        rows = ops.matmul(self._rows(parts), ops.transpose(start))
        # One step of Newton and Schulz, or rounding would add up from base to base.
        full = self._full(rows)
        error = rows - ops.matmul(ops.matmul(rows, ops.transpose(full)), full)
        return rows + 0.5 * error

    def _rows(self, parts: _Parts) -> Tensor:
        """`W`, of complex units its rows `[Re W | Im W]`."""
        return ops.matmul(parts.base, self.parametrization.matrix(*parts.near))

    def _full(self, rows: Tensor) -> Tensor:
        return block(rows) if self.is_complex else rows

    def _parts(self, values: Sequence[Any]) -> _Parts:
        base, passes, *rest = values
        # An initializer that draws no seed of its own.
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
    """Gives a parametrization a base, where a layer is told to move one.

    Args:
        kind: The parametrization.
        rebase_every: After how many passes of training, or `None`.

    Returns:
        A `Rebased`, or `kind` itself.

    Raises:
        ValueError: If `rebase_every` is out of its range.
    """
    return kind if rebase_every is None else Rebased(kind, rebase_every)
