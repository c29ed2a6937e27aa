"""Products with a recurrent kernel: a matrix, or the blocks of a block-diagonal one.

Blocks have the shape `(heads, k, k)`; those of complex units, of which the state holds
all real parts first, `(heads, 2, k, 2, k)`.
"""

from keras import ops

from keras_ortho.backend import sum_over_steps
from keras_ortho.backend.types import Tensor


def times(states: Tensor, kernel: Tensor) -> Tensor:
    """Computes `h W`.

    Args:
        states: Tensor of shape `(rows, n)`.
        kernel: `W`, of shape `(n, n)`, or its blocks.

    Returns:
        Tensor of the shape of `states`.

    Example:
    >>> times(np.array([[1.0, 2.0]]), np.array([[[3.0]], [[4.0]]]))
    [[3, 8]]
    """
    if len(kernel.shape) == 2:
        return ops.matmul(states, kernel)
    # Transposed by hand: what XLA makes of an einsum takes half as long again.
    product = ops.matmul(_of_heads(states, kernel), _as_matrices(kernel))
    return _in_a_row(product, kernel)


def times_at_all_steps(states: Tensor, kernel: Tensor) -> Tensor:
    """Computes `h W` for all steps of all sequences.

    Args:
        states: Tensor of shape `(time, batch, n)`.
        kernel: Tensor of shape `(n, m)`, or the blocks of a recurrent kernel.

    Returns:
        Tensor of shape `(time, batch, m)`.
    """
    steps, batch = ops.shape(states)[:2]
    product = times(_rows(states), kernel)
    return ops.reshape(product, (steps, batch, product.shape[-1]))


def transposed(kernel: Tensor) -> Tensor:
    """Transposes a kernel, or each of its blocks.

    Args:
        kernel: `W`, of shape `(n, n)`, or its blocks.

    Returns:
        Tensor of the shape of `kernel`.
    """
    axes = {2: (1, 0), 3: (0, 2, 1), 5: (0, 3, 4, 1, 2)}
    return ops.transpose(kernel, axes[len(kernel.shape)])


def outer_sum(states: Tensor, gradients: Tensor, kernel: Tensor) -> Tensor:
    """Computes `dL/dW` of `h W`, the sum of the outer products of all steps.

    Args:
        states: `h`, of shape `(batch, n)` or `(time, batch, n)`.
        gradients: `dL/d(h W)`, of the same shape.
        kernel: `W`, of shape `(n, n)`, or its blocks.

    Returns:
        Tensor of the shape of `kernel`, of blocks in float32 at least on JAX.
    """
    if len(kernel.shape) == 2:
        return ops.matmul(ops.transpose(_rows(states)), _rows(gradients))

    def product(states: Tensor, gradients: Tensor) -> Tensor:
        befores = ops.transpose(_of_heads(states, kernel), (0, 2, 1))
        return ops.matmul(befores, _of_heads(gradients, kernel))

    both = states, gradients
    of_a_step = len(states.shape) == 2
    sums = product(*both) if of_a_step else sum_over_steps(product, *both)
    return ops.reshape(sums, kernel.shape)


def _rows(x: Tensor) -> Tensor:
    """All steps of all sequences under each other, for one large product."""
    return ops.reshape(x, (-1, x.shape[-1]))


def _as_matrices(kernel: Tensor) -> Tensor:
    """Blocks as `(heads, k, k)`, those of complex units as `(heads, 2k, 2k)`."""
    if len(kernel.shape) == 3:
        return kernel
    heads, parts, order, *_ = kernel.shape
    return ops.reshape(kernel, (heads, parts * order, parts * order))


def _of_heads(states: Tensor, kernel: Tensor) -> Tensor:
    """From `(rows, n)` to `(heads, rows, k)`, or `(heads, rows, 2k)`."""
    heads, order = kernel.shape[0], kernel.shape[-1]
    if len(kernel.shape) == 3:
        return ops.transpose(ops.reshape(states, (-1, heads, order)), (1, 0, 2))
    parts = ops.transpose(ops.reshape(states, (-1, 2, heads, order)), (2, 0, 1, 3))
    return ops.reshape(parts, (heads, -1, 2 * order))


def _in_a_row(products: Tensor, kernel: Tensor) -> Tensor:
    """The way back from `_of_heads`."""
    heads, order = kernel.shape[0], kernel.shape[-1]
    if len(kernel.shape) == 3:
        return ops.reshape(ops.transpose(products, (1, 0, 2)), (-1, heads * order))
    parts = ops.reshape(products, (heads, -1, 2, order))
    return ops.reshape(ops.transpose(parts, (1, 2, 0, 3)), (-1, 2 * heads * order))
