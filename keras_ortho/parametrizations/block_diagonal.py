"""Block-diagonal matrices: conversion between the blocks and the whole matrix.

The blocks are one tensor of shape `(heads, k, k)`. With complex units, the matrix is
stored in its real form, where each block appears in four places, and the blocks have
the shape `(heads, 2, k, 2, k)`.
"""

from collections.abc import Sequence

import numpy as np
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.arithmetic import rounding_tolerance


def blocks_shape(heads: int, order: int, is_complex: bool) -> tuple[int, ...]:
    """Returns the shape of the blocks of a matrix."""
    return (heads, *((2, order) if is_complex else (order,)) * 2)


def stacked_blocks(blocks: Sequence[Tensor], is_complex: bool) -> Tensor:
    """Stacks blocks into one tensor."""
    order = blocks[0].shape[0] // (2 if is_complex else 1)
    shape = blocks_shape(len(blocks), order, is_complex)
    return ops.reshape(ops.stack(list(blocks)), shape)


def block_diagonal(blocks: Tensor) -> Tensor:
    """Makes a block-diagonal matrix from its blocks."""
    is_complex = len(blocks.shape) == 5
    heads, order = blocks.shape[0], blocks.shape[-1]
    rule = "hpiqj,hg->phiqgj" if is_complex else "hij,hg->higj"
    spread = ops.einsum(rule, blocks, ops.eye(heads, dtype=blocks.dtype))
    size = heads * order * (2 if is_complex else 1)
    return ops.reshape(spread, (size, size))


def diagonal_blocks(
    matrix: np.ndarray, heads: int
) -> tuple[list[np.ndarray], np.ndarray]:
    """Splits a matrix into its diagonal blocks and the rest."""
    size = len(matrix)
    head = np.arange(size) // (size // heads)
    blocks = [matrix[np.ix_(head == i, head == i)] for i in range(heads)]
    return blocks, np.where(head[:, None] == head, 0, matrix)


def only_blocks(matrix: np.ndarray, heads: int) -> list[np.ndarray]:
    """Returns the blocks of a block-diagonal matrix."""
    blocks, rest = diagonal_blocks(matrix, heads)
    largest = np.abs(rest).max()
    if not largest <= rounding_tolerance(len(matrix), matrix.dtype):
        raise ValueError(
            f"`matrix` must be zero outside of its {heads} blocks. Received: an entry "
            f"of {largest:.3g} there"
        )
    return blocks
