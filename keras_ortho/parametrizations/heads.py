"""Heads: a block-diagonal matrix, each block of a parametrization of its own.

    W = diag(W_1, ..., W_h)

A step with blocks of order `k = n / h` takes `n k` multiplications for `n^2`, and to
make them takes `h k^3` for `n^3`. The units of one head do not see those of another:
inputs, and whatever reads the state, bring them together.
"""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np

from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_count, check_shape, check_square
from keras_ortho.parametrizations.base import (
    FreeVariable,
    Parametrization,
    check_parametrization,
)
from keras_ortho.parametrizations.block_diagonal import (
    block_diagonal,
    diagonal_blocks,
    only_blocks,
    stacked_blocks,
)
from keras_ortho.parametrizations.free import independents


@keras.saving.register_keras_serializable(package="keras_ortho")
class Heads(Parametrization):
    """Block-diagonal matrices, with blocks of another parametrization.

    A recurrent layer with the plain step `f(x U + h W)` multiplies with the blocks
    alone, and costs what these cost; elsewhere the matrix is made as a whole. Each
    head has free variables of its own, named `head_0_recurrent_skew` and so on, and
    starts from other values. An initializer of a matrix, such as `"orthogonal"`, makes
    each block; an array is the whole matrix.

    With a base that follows the training, each head has its own:
    `Heads(Rebased(...))`.

    Args:
        parametrization: That of the blocks, of the package or your own. What it counts,
            such as `negative_ones`, it counts in each block.
        heads: Number of blocks, a positive integer; the number of units must be a
            multiple of it.
        mix_inputs: Whether every head of a recurrent layer reads all its inputs.
            Otherwise the input kernel is block-diagonal, too: each head reads an equal
            part of the inputs, and nothing in the layer mixes the heads. Meant for a
            layer on top of another that has as many units. Default: `True`.

    Raises:
        ValueError: If an argument is out of its range.

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
                "`parametrization` must make blocks without heads of their own. "
                f"Received: {type(self.parametrization).__name__} with "
                f"heads={self.parametrization.heads}"
            )
        self.heads = check_count("heads", heads)
        self.mix_inputs = mix_inputs
        self.input_heads = 1 if mix_inputs else self.heads
        self.is_complex = self.parametrization.is_complex
        self.takes = self.parametrization.takes
        self.has_base = self.parametrization.has_base

    def check(self, size: int) -> None:
        """Checks that the heads are of one size, and what the blocks check."""
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
        """Initializers of the heads, none of which a head derives for a variable."""
        drawn = getattr(initializer, "seeds", 1)
        step = max(len(self.parametrization.variables(order)), drawn)
        return independents(initializer, self.heads * step)[::step]

    def start(
        self, name: str, initializer: Any, size: int, dtype: str
    ) -> list[FreeVariable]:
        """Lists the variables of all heads, started as an argument of a layer says."""
        if isinstance(initializer, keras.initializers.Constant):  # An array.
            return super().start(name, initializer, size, dtype)
        order = size // self.heads
        return _named(
            self.parametrization.start(name, own, order, dtype)
            for own in self._of_each_head(initializer, order)
        )

    def matrix(self, *values: Tensor) -> Tensor:
        """Makes the matrix, with its zeros."""
        return block_diagonal(self.blocks(*values))

    def blocks(self, *values: Tensor) -> Tensor:
        """Makes the blocks."""
        blocks = [self.parametrization.matrix(*own) for own in self._split(values)]
        return stacked_blocks(blocks, self.is_complex)

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds the values for each block, where the rest of the matrix is zero."""
        matrix = np.asarray(matrix)
        check_shape("matrix", matrix, (len(matrix), len(matrix)))
        self.check(len(matrix))
        blocks = only_blocks(matrix, self.heads)
        return tuple(
            value for block in blocks for value in self.parametrization.inverse(block)
        )

    def parts(self, *values: Tensor) -> dict[str, Tensor]:
        """Gives what is held orthogonal, or unitary, in each block."""
        return {
            f"head_{head}_{name}".rstrip("_"): part
            for head, own in enumerate(self._split(values))
            for name, part in self.parametrization.parts(*own).items()
        }

    def distance(self, matrix: np.ndarray) -> float:
        """Measures how far the blocks are from their set, and the rest from zero."""
        check_square("matrix", matrix)
        self.check(len(matrix))
        blocks, rest = diagonal_blocks(matrix, self.heads)
        distances = [self.parametrization.distance(block) for block in blocks]
        return math.hypot(*distances, float(np.linalg.norm(rest)))

    def sample(self, size: int, seed: int | None = None) -> np.ndarray:
        """Draws each block by itself."""
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
        """Changes what the blocks' parametrization changes, of each."""
        for own in self._split(variables):
            self.parametrization.begin_training_pass(own, dtype)

    def rebase(self, variables: Sequence[Any], dtype: str) -> None:
        """Moves the base of each block."""
        for own in self._split(variables):
            self.parametrization.rebase(own, dtype)

    def _split(self, values: Sequence[Any]) -> list[Sequence[Any]]:
        """The variables of each head, or their values."""
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
    """Gives a matrix heads, where there are more than one.

    Args:
        kind: The parametrization of the blocks.
        heads: Number of heads.
        mix_inputs: Whether every head reads all inputs. Default: `True`.

    Returns:
        A `Heads`, or `kind` itself.

    Raises:
        ValueError: If `heads` is not a positive integer.
    """
    if check_count("heads", heads) == 1:
        return kind
    return Heads(kind, heads, mix_inputs)
