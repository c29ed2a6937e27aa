"""Heads: block-diagonal matrices `diag(W_1, ..., W_h)` of separate parametrizations."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_count, check_square
from keras_ortho.parametrizations.arithmetic import (
    block_diagonal,
    blocks_shape,
    diagonal_blocks,
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

    A recurrent layer with the plain step `f(x U + h W)` multiplies by the blocks only;
    other layers use the full matrix. Each head has its own free variables, named
    `head_0_recurrent_skew` and so on, with different initial values. An initializer
    that returns a matrix, such as `"orthogonal"`, makes each block; an array is the
    whole matrix. In `Heads(Rebased(...))`, each head has its own base.

    Args:
        parametrization: Parametrization of the blocks, from this package or your own.
            Its arguments, such as `negative_ones`, apply to each block.
        heads: Number of blocks, a positive integer. The number of units must be a
            multiple of it.
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
        if size % self.heads:
            raise ValueError(
                "`units` must be a multiple of the number of heads. "
                f"Received: units={size}, heads={self.heads}"
            )
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
            for block in only_blocks(matrix, self.heads)
            for value in self.parametrization.inverse(block)
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


def in_heads(
    kind: Parametrization, heads: int, mix_inputs: bool = True
) -> Parametrization:
    """Wraps a parametrization in `Heads`, if there is more than one head."""
    if check_count("heads", heads) == 1:
        return kind
    return Heads(kind, heads, mix_inputs)
