"""Products with a kernel: a matrix, or the blocks of a block-diagonal matrix.

Blocks have the shape `(heads, j, k)`, rows first. For complex units, whose state stores
all real parts first, it is `(heads, 2, k, 2, k)`; from real inputs to complex units, it
is `(heads, 1, j, 2, k)`.
"""

import functools
import math

from keras import ops

from keras_ortho.backend import sum_over_steps
from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor


def times(states: Tensor, kernel: Tensor) -> Tensor:
    """Computes `h W`, or `x U`, of one step, or of all steps at once."""
    if len(states.shape) == 3:
        steps, batch = ops.shape(states)[:2]
        product = times(_rows(states), kernel)
        return ops.reshape(product, (steps, batch, product.shape[-1]))
    if len(kernel.shape) == 2:
        return ops.matmul(states, kernel)
    # Explicit transposes: XLA's code for an einsum takes 1.5 times as long.
    (heads, *rows), (_, *columns) = _sides(kernel)
    matrices = ops.reshape(kernel, (heads, math.prod(rows), math.prod(columns)))
    product = ops.matmul(_of_heads(states, heads, *rows), matrices)
    parts, order = columns
    split = ops.reshape(product, (heads, -1, parts, order))
    return ops.reshape(ops.transpose(split, (1, 2, 0, 3)), (-1, parts * heads * order))


def transposed(kernel: Tensor) -> Tensor:
    """Transposes a kernel, or each of its blocks."""
    axes = {2: (1, 0), 3: (0, 2, 1), 5: (0, 3, 4, 1, 2)}
    return ops.transpose(kernel, axes[len(kernel.shape)])


def outer_sum(states: Tensor, gradients: Tensor, kernel: Tensor) -> Tensor:
    """Computes `dL/dW` for `h W`: the sum of the outer products of all time steps."""
    exact = wide_dtype(states.dtype)
    if len(kernel.shape) == 2:
        product = ops.matmul(ops.transpose(_rows(states)), _rows(gradients))
        return ops.cast(product, exact)
    rows, columns = _sides(kernel)

    def of_heads(states: Tensor, gradients: Tensor) -> Tensor:
        befores = ops.transpose(_of_heads(states, *rows), (0, 2, 1))
        return ops.matmul(befores, _of_heads(gradients, *columns))

    one_step = len(states.shape) == 2
    add_up = of_heads if one_step else functools.partial(sum_over_steps, of_heads)
    return ops.reshape(ops.cast(add_up(states, gradients), exact), kernel.shape)


def _rows(x: Tensor) -> Tensor:
    """Stacks all steps of all sequences into one matrix, for one large product."""
    return ops.reshape(x, (-1, x.shape[-1]))


def _sides(blocks: Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns for rows and columns: heads, parts per unit, and units per head."""
    heads, *sizes = blocks.shape
    if len(sizes) == 2:
        sizes = [1, sizes[0], 1, sizes[1]]
    return (heads, *sizes[:2]), (heads, *sizes[2:])


def _of_heads(states: Tensor, heads: int, parts: int, order: int) -> Tensor:
    """Reshapes `(rows, n)` to `(heads, rows, parts * order)`."""
    split = ops.reshape(states, (-1, parts, heads, order))
    return ops.reshape(ops.transpose(split, (2, 0, 1, 3)), (heads, -1, parts * order))
