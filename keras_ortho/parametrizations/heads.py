"""Heads: block-diagonal matrices whose blocks are parametrized separately.

    W = diag(W_1, ..., W_h)

With blocks of order `k = n / h`, a step costs `n k` multiplications instead of `n^2`,
and computing the blocks costs `h k^3` instead of `n^3`. The units of one head do not
see those of another: only the inputs, and the layer that reads the state, mix heads.
"""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np

from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_count, check_shape, check_square
from keras_ortho.parametrizations.arithmetic import (
    block_diagonal,
    diagonal_blocks,
    only_blocks,
    stacked_blocks,
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

    A recurrent layer with the plain step `f(x U + h W)` multiplies by the blocks only;
    other layers use the full matrix. Each head has its own free variables, named
    `head_0_recurrent_skew` and so on, with different initial values. An initializer
    that returns a matrix, such as `"orthogonal"`, makes each block; an array is the
    whole matrix.

    In `Heads(Rebased(...))`, each head has its own base.

    Args:
        parametrization: Parametrization of the blocks, from this package or your own.
            Its arguments, such as `negative_ones`, apply to each block.
        heads: Number of blocks, a positive integer. The number of units must be a
            multiple of it.
        mix_inputs: Whether every head of a recurrent layer reads all inputs. Otherwise
            the input kernel is block-diagonal, too: each head reads an equal part of
            the inputs, and nothing in the layer mixes the heads. `False` is meant for a
            layer on top of another one with as many units. Default: `True`.

    Raises:
        ValueError: If `parametrization` is not a parametrization or has heads itself,
            or `heads` is not a positive integer.

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
        if self.parametrization.heads > 1:
            raise ValueError(
                "`parametrization` must not have heads itself. Received: "
                f"{type(self.parametrization).__name__} with "
                f"heads={self.parametrization.heads}"
            )
        self.heads = check_count("heads", heads)
        self.mix_inputs = mix_inputs
        self.input_heads = 1 if mix_inputs else self.heads
        self.is_complex = self.parametrization.is_complex
        self.takes = self.parametrization.takes
        self.has_base = self.parametrization.has_base

    def check(self, size: int) -> None:
        """Checks that the heads divide the units, and the order of the blocks."""
        if size % self.heads:
            raise ValueError(
                "`units` must be a multiple of the number of heads. "
                f"Received: units={size}, heads={self.heads}"
            )
        self.parametrization.check(size // self.heads)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the variables of all heads."""
        self.check(size)
        order = size // self.heads
        return _named(
            self.parametrization.variables(order, own)
            for own in self._of_each_head(initializer, order)
        )

    def _of_each_head(self, initializer: Any, order: int) -> list[Any]:
        """Returns initializers of the heads, with seeds that no other head uses."""
        drawn = getattr(initializer, "seeds", 1)
        step = max(len(self.parametrization.variables(order)), drawn)
        return independents(initializer, self.heads * step)[::step]

    def start(
        self, name: str, initializer: Any, size: int, dtype: str
    ) -> list[FreeVariable]:
        """Lists the variables of all heads, with their initializers."""
        if isinstance(initializer, keras.initializers.Constant):  # An array.
            return super().start(name, initializer, size, dtype)
        order = size // self.heads
        return _named(
            self.parametrization.start(name, own, order, dtype)
            for own in self._of_each_head(initializer, order)
        )

    def matrix(self, *values: Tensor) -> Tensor:
        """Makes the full matrix, including its zeros."""
        return block_diagonal(self.blocks(*values))

    def blocks(self, *values: Tensor) -> Tensor:
        """Makes the blocks."""
        blocks = [self.parametrization.matrix(*own) for own in self._split(values)]
        return stacked_blocks(blocks, self.is_complex)

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds the values for each block, if the rest of the matrix is zero."""
        matrix = np.asarray(matrix)
        check_shape("matrix", matrix, (len(matrix), len(matrix)))
        self.check(len(matrix))
        blocks = only_blocks(matrix, self.heads)
        return tuple(
            value for block in blocks for value in self.parametrization.inverse(block)
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
        distances = [self.parametrization.distance(block) for block in blocks]
        return math.hypot(*distances, float(np.linalg.norm(rest)))

    def sample(self, size: int, seed: int | None = None) -> np.ndarray:
        """Draws each block independently."""
        self.check(size)
        order = size // self.heads
        seeds = np.random.default_rng(seed).integers(2**31, size=self.heads)
        matrices = [self.parametrization.sample(order, int(own)) for own in seeds]
        matrix = np.zeros((size, size), np.result_type(*matrices))
        for head, own in enumerate(matrices):
            place = slice(head * order, (head + 1) * order)
            matrix[place, place] = own
        return matrix

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


def _named(variables: Iterable[list[FreeVariable]]) -> list[FreeVariable]:
    return [
        dataclasses.replace(variable, name=f"head_{head}_{variable.name}")
        for head, own in enumerate(variables)
        for variable in own
    ]


def in_heads(
    kind: Parametrization, heads: int, mix_inputs: bool = True
) -> Parametrization:
    """Wraps a parametrization in `Heads`, if there is more than one head."""
    if check_count("heads", heads) == 1:
        return kind
    return Heads(kind, heads, mix_inputs)
