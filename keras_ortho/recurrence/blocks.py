"""Products with a kernel: a matrix, or the blocks of a block-diagonal matrix.

Blocks have the shape `(heads, j, k)`, rows first. For complex units, whose state stores
all real parts first, it is `(heads, 2, k, 2, k)`; from real inputs to complex units, it
is `(heads, 1, j, 2, k)`.
"""

import math

from keras import ops

from keras_ortho.backend import sum_over_steps
from keras_ortho.backend.types import Tensor


def times(states: Tensor, kernel: Tensor) -> Tensor:
    """Computes `h W`, or `x U`."""
    if len(kernel.shape) == 2:
        return ops.matmul(states, kernel)
    # Explicit transposes: XLA's code for an einsum takes 1.5 times as long.
    rows, columns = _sides(kernel)
    product = ops.matmul(_of_heads(states, *rows), _as_matrices(kernel))
    return _in_a_row(product, *columns)


def times_at_all_steps(states: Tensor, kernel: Tensor) -> Tensor:
    """Computes `h W` for all time steps of all sequences."""
    steps, batch = ops.shape(states)[:2]
    product = times(_rows(states), kernel)
    return ops.reshape(product, (steps, batch, product.shape[-1]))


def transposed(kernel: Tensor) -> Tensor:
    """Transposes a kernel, or each of its blocks."""
    axes = {2: (1, 0), 3: (0, 2, 1), 5: (0, 3, 4, 1, 2)}
    return ops.transpose(kernel, axes[len(kernel.shape)])


def outer_sum(states: Tensor, gradients: Tensor, kernel: Tensor) -> Tensor:
    """Computes `dL/dW` for `h W`: the sum of the outer products of all time steps."""
    if len(kernel.shape) == 2:
        return ops.matmul(ops.transpose(_rows(states)), _rows(gradients))

    rows, columns = _sides(kernel)

    def product(states: Tensor, gradients: Tensor) -> Tensor:
        befores = ops.transpose(_of_heads(states, *rows), (0, 2, 1))
        return ops.matmul(befores, _of_heads(gradients, *columns))

    both = states, gradients
    of_a_step = len(states.shape) == 2
    sums = product(*both) if of_a_step else sum_over_steps(product, *both)
    return ops.reshape(sums, kernel.shape)


def _rows(x: Tensor) -> Tensor:
    """Stacks all steps of all sequences into one matrix, for one large product."""
    return ops.reshape(x, (-1, x.shape[-1]))


def _sides(kernel: Tensor) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Returns for rows and columns: heads, parts per unit, and units per head."""
    heads, *axes = kernel.shape
    rows, columns = (
        (axes[:2], axes[2:]) if len(axes) == 4 else ((1, axes[0]), (1, axes[1]))
    )
    return (heads, *rows), (heads, *columns)


def _as_matrices(kernel: Tensor) -> Tensor:
    """Reshapes blocks to `(heads, j, k)`, with all parts of the units."""
    (heads, *rows), (_, *columns) = _sides(kernel)
    return ops.reshape(kernel, (heads, math.prod(rows), math.prod(columns)))


def _of_heads(states: Tensor, heads: int, parts: int, order: int) -> Tensor:
    """Reshapes `(rows, n)` to `(heads, rows, parts * order)`."""
    if parts == 1:
        return ops.transpose(ops.reshape(states, (-1, heads, order)), (1, 0, 2))
    split = ops.reshape(states, (-1, parts, heads, order))
    return ops.reshape(ops.transpose(split, (2, 0, 1, 3)), (heads, -1, parts * order))


def _in_a_row(products: Tensor, heads: int, parts: int, order: int) -> Tensor:
    """Inverts `_of_heads`."""
    if parts == 1:
        return ops.reshape(ops.transpose(products, (1, 0, 2)), (-1, heads * order))
    split = ops.reshape(products, (heads, -1, parts, order))
    return ops.reshape(ops.transpose(split, (1, 2, 0, 3)), (-1, parts * heads * order))
