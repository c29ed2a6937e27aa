"""Matrices made of those of other parametrizations: blocks, and relative to a base."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend import eagerly
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check, check_count, check_square
from keras_ortho.parametrizations.arithmetic import (
    block,
    block_diagonal,
    blocks_shape,
    diagonal_blocks,
    nearest_orthogonal,
    nearest_unitary,
    only_blocks,
)
from keras_ortho.parametrizations.base import (
    FreeVariable,
    Parametrization,
    check_parametrization,
)
from keras_ortho.parametrizations.free_initializers import independents


@keras.saving.register_keras_serializable(package="keras_ortho")
class Heads(Parametrization):
    """Block-diagonal matrices with blocks of another parametrization.

    A recurrent layer with the plain step `f(x U + h W)` multiplies by the blocks only.
    Each head has its own free variables, named `head_0_recurrent_skew` and so on, with
    different initial values. An initializer that returns a matrix, such as
    `"orthogonal"`, makes each block; an array is the whole matrix. In
    `Heads(Rebased(...))`, each head has its own base.

    Args:
        parametrization: Parametrization of the blocks, from this package or your own.
            Its arguments, such as `negative_ones`, apply to each block.
        heads: Number of blocks, a positive integer, a divisor of the number of units.
        mix_inputs: Whether every head of a recurrent layer reads all inputs. Otherwise
            the input kernel is block-diagonal, too: each head reads an equal part of
            the inputs. Default: `True`.

    Raises:
        ValueError: If an argument is not of these.

    Example:
    >>> from keras_ortho.parametrizations import ScaledCayley
    >>> kind = Heads(ScaledCayley(), heads=2)
    >>> kind.distance(kind.sample(8)) < 1e-12
    True
    """

    def __init__(
        self, parametrization: Any, heads: int, mix_inputs: bool = True
    ) -> None:
        self.parametrization = check_parametrization(parametrization)
        self.heads = check_count("heads", heads)
        self.mix_inputs = mix_inputs
        self.input_heads = 1 if mix_inputs else self.heads
        self.is_complex = self.parametrization.is_complex
        self.takes = self.parametrization.takes
        self.has_base = self.parametrization.has_base

    def check(self, size: int) -> None:
        """Checks that the heads divide the units, and the order of the blocks."""
        wanted = "be a multiple of the number of heads"
        received = f"units={size}, heads={self.heads}"
        check(size % self.heads == 0, "units", wanted, received)
        self.parametrization.check(size // self.heads)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the variables of all heads."""
        return self._of_heads(size, initializer, self.parametrization.variables)

    def start(
        self, name: str, initializer: Any, size: int, dtype: str
    ) -> list[FreeVariable]:
        """Lists the variables of all heads, with their initializers."""
        if isinstance(initializer, keras.initializers.Constant):  # An array.
            return super().start(name, initializer, size, dtype)

        def make(order: int, own: Any) -> list[FreeVariable]:
            return self.parametrization.start(name, own, order, dtype)

        return self._of_heads(size, initializer, make)

    def _of_heads(
        self, size: int, initializer: Any, make: Callable[[int, Any], list[Any]]
    ) -> list[FreeVariable]:
        """Makes the variables of each head, with seeds that no other head uses."""
        self.check(size)
        order = size // self.heads
        drawn = getattr(initializer, "seeds", 1)
        step = max(len(self.parametrization.variables(order)), drawn)
        each = independents(initializer, self.heads * step)[::step]
        return [
            dataclasses.replace(variable, name=f"head_{head}_{variable.name}")
            for head, own in enumerate(each)
            for variable in make(order, own)
        ]

    def matrix(self, *values: Tensor) -> Tensor:
        """Makes the full matrix, including its zeros."""
        return block_diagonal(self.blocks(*values))

    def blocks(self, *values: Tensor) -> Tensor:
        """Makes the blocks."""
        made = [self.parametrization.matrix(*own) for own in self._split(values)]
        order = made[0].shape[0] // (1 + self.is_complex)
        shape = blocks_shape(self.heads, order, self.is_complex)
        return ops.reshape(ops.stack(made), shape)

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds the values for each block, if the rest of the matrix is zero."""
        check_square("matrix", matrix)
        self.check(len(matrix))
        return tuple(
            value
            for own in only_blocks(matrix, self.heads)
            for value in self.parametrization.inverse(own)
        )

    def parts(self, *values: Tensor) -> dict[str, Tensor]:
        """Returns the parts of each block that are kept orthogonal or unitary."""
        return {
            f"head_{head}_{name}".rstrip("_"): part
            for head, own in enumerate(self._split(values))
            for name, part in self.parametrization.parts(*own).items()
        }

    def distance(self, matrix: np.ndarray) -> float:
        """Measures the distance of the blocks from their set and the rest from zero."""
        check_square("matrix", matrix)
        self.check(len(matrix))
        blocks, rest = diagonal_blocks(matrix, self.heads)
        distances = [self.parametrization.distance(own) for own in blocks]
        return math.hypot(*distances, float(np.linalg.norm(rest)))

    def sample(self, size: int, seed: int | None = None) -> np.ndarray:
        """Draws each block independently."""
        self.check(size)
        order = size // self.heads
        seeds = np.random.default_rng(seed).integers(2**31, size=self.heads)
        blocks = [self.parametrization.sample(order, int(own)) for own in seeds]
        spread = np.einsum("hij,hg->higj", np.stack(blocks), np.eye(self.heads))
        return spread.reshape(size, size)

    def begin_training_pass(self, variables: Sequence[Any], dtype: str) -> None:
        """Begins a training pass for each block."""
        for own in self._split(variables):
            self.parametrization.begin_training_pass(own, dtype)

    def rebase(self, variables: Sequence[Any], dtype: str) -> None:
        """Moves the base of each block."""
        for own in self._split(variables):
            self.parametrization.rebase(own, dtype)

    def _split(self, values: Sequence[Any]) -> list[Sequence[Any]]:
        """Returns the variables, or values, of each head."""
        count = len(values) // self.heads
        return [values[i : i + count] for i in range(0, len(values), count)]


@keras.saving.register_keras_serializable(package="keras_ortho")
class Rebased(Parametrization):
    """Matrices of another parametrization, relative to a base that follows training.

    The matrix is `W = B M(v - o)`, with the map `M` of the other parametrization, its
    trained variables `v`, their origin `o`, initially zero, and the base `B`, initially
    the identity. A layer's `rebase` method and the callback
    `keras_ortho.training_callbacks.Rebase` move the base to `W M(0)*` and set `v` and
    `o` to zero: `W` does not change. With `rebase_every`, the layer moves its base
    itself, within the compiled training step, and sets `o` to `v` instead. Regularizers
    and weight decay act on `v`.

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
    [Lezcano-Casado, 2019](https://arxiv.org/abs/1909.09501), algorithm 1
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
        zeros, eye = keras.initializers.Zeros(), keras.initializers.Identity()
        return [
            # Exact, because each move rounds the base again.
            FreeVariable("recurrent_base", shape, eye, trainable=False, exact=True),
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
        zeros = keras.initializers.Zeros()  # It draws no random numbers.
        inner = self.parametrization.variables(base.shape[0], zeros)
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
        variables = self.variables(len(matrix), keras.initializers.Zeros())
        _, *rest = values = self._initial(variables, np.zeros)
        with eagerly():
            start = ops.convert_to_numpy(self.matrix(*values))
        if self.is_complex:
            matrix = np.concatenate([matrix.real, matrix.imag], axis=1)
        return (matrix @ start.T, *map(ops.convert_to_numpy, rest))

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


def in_heads(
    kind: Parametrization, heads: int, mix_inputs: bool = True
) -> Parametrization:
    """Wraps a parametrization in `Heads`, if there is more than one head."""
    if check_count("heads", heads) == 1:
        return kind
    return Heads(kind, heads, mix_inputs)


def rebased(kind: Parametrization, rebase_every: int | None) -> Parametrization:
    """Wraps a parametrization in `Rebased`, unless `rebase_every` is `None`."""
    return kind if rebase_every is None else Rebased(kind, rebase_every)
