"""Products of all steps of all sequences at once, where a backend has no better."""

from keras import ops

from keras_ortho.backend.types import Tensor


def product(x: Tensor, kernel: Tensor) -> Tensor:
    """Computes `x` times a kernel for all steps of all sequences, in one product.

    Args:
        x: Tensor of shape `(time, batch, m)`.
        kernel: Tensor of shape `(m, n)`.

    Returns:
        Tensor of shape `(time, batch, n)`.
    """
    steps, batch = ops.shape(x)[:2]
    return ops.reshape(ops.matmul(rows(x), kernel), (steps, batch, kernel.shape[-1]))


def outer_sum(x: Tensor, y: Tensor) -> Tensor:
    """Computes the sum of the outer products of two vectors at each step.

    Args:
        x: Tensor of shape `(..., m)`.
        y: Tensor of shape `(..., n)`.

    Returns:
        Tensor of shape `(m, n)`.
    """
    return ops.matmul(ops.transpose(rows(x)), rows(y))


def rows(x: Tensor) -> Tensor:
    """All steps of all sequences under each other.

    Args:
        x: Tensor of shape `(..., n)`.

    Returns:
        Tensor of shape `(rows, n)`.
    """
    return ops.reshape(x, (-1, x.shape[-1]))
