"""Block-diagonal matrices: their blocks in one tensor, and the matrix itself.

Blocks have the shape `(heads, k, k)`. A matrix of complex units is held in its real
form, in which a block is spread over four places; its blocks have the shape
`(heads, 2, k, 2, k)`.
"""

from collections.abc import Sequence

import numpy as np
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.arithmetic import rounding_tolerance


def blocks_shape(heads: int, order: int, is_complex: bool) -> tuple[int, ...]:
    """The shape of the blocks of a matrix.

    Args:
        heads: Number of blocks.
        order: Number of units of each, `k`.
        is_complex: Whether the units are complex.

    Returns:
        `(heads, k, k)`, or `(heads, 2, k, 2, k)`.
    """
    return (heads, *((2, order) if is_complex else (order,)) * 2)


def stacked_blocks(blocks: Sequence[Tensor], is_complex: bool) -> Tensor:
    """Puts blocks into one tensor.

    Args:
        blocks: Tensors of shape `(k, k)`, or `(2k, 2k)`, in their real form.
        is_complex: Whether the units are complex.

    Returns:
        Tensor of shape `(heads, k, k)`, or `(heads, 2, k, 2, k)`.
    """
    order = blocks[0].shape[0] // (2 if is_complex else 1)
    shape = blocks_shape(len(blocks), order, is_complex)
    return ops.reshape(ops.stack(list(blocks)), shape)


def block_diagonal(blocks: Tensor) -> Tensor:
    """Makes the matrix of its blocks, with zeros elsewhere.

    Args:
        blocks: Tensor of shape `(heads, k, k)`, or `(heads, 2, k, 2, k)`.

    Returns:
        Tensor of shape `(n, n)`, or `(2n, 2n)`, the real form of a complex matrix.

    Example:
    >>> block_diagonal(np.array([[[1.0]], [[2.0]]]))
    [[1, 0], [0, 2]]
    """
    is_complex = len(blocks.shape) == 5
    heads, order = blocks.shape[0], blocks.shape[-1]
    rule = "hpiqj,hg->phiqgj" if is_complex else "hij,hg->higj"
    spread = ops.einsum(rule, blocks, ops.eye(heads, dtype=blocks.dtype))
    size = heads * order * (2 if is_complex else 1)
    return ops.reshape(spread, (size, size))


def diagonal_blocks(
    matrix: np.ndarray, heads: int
) -> tuple[list[np.ndarray], np.ndarray]:
    """Takes the blocks out of a matrix.

    Args:
        matrix: Square array of shape `(n, n)`.
        heads: Number of blocks, a divisor of `n`.

    Returns:
        A pair of the blocks, arrays of shape `(n / heads, n / heads)`, and what is left
        of the matrix, with zeros in their places.

    Example:
    >>> diagonal_blocks(np.array([[1, 2], [0, 3]]), heads=2)
    ([array([[1]]), array([[3]])], array([[0, 2],
           [0, 0]]))
    """
    size = len(matrix)
    head = np.arange(size) // (size // heads)
    blocks = [matrix[np.ix_(head == i, head == i)] for i in range(heads)]
    return blocks, np.where(head[:, None] == head, 0, matrix)


def only_blocks(matrix: np.ndarray, heads: int) -> list[np.ndarray]:
    """Takes the blocks out of a matrix that holds nothing else.

    Args:
        matrix: Square array of shape `(n, n)`.
        heads: Number of blocks, a divisor of `n`.

    Returns:
        The blocks, arrays of shape `(n / heads, n / heads)`.

    Raises:
        ValueError: If an entry outside of them is not zero, but for rounding.
    """
    blocks, rest = diagonal_blocks(matrix, heads)
    largest = np.abs(rest).max()
    if not largest <= rounding_tolerance(len(matrix), matrix.dtype):
        raise ValueError(
            f"`matrix` must be zero outside of its {heads} blocks. "
            f"Received: one with an entry of {largest:.3g} there"
        )
    return blocks
