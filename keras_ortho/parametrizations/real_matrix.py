"""The check of the matrices that inverse maps take."""

import numpy as np


def real_square(matrix: np.ndarray) -> np.ndarray:
    """Checks that a matrix is square, real and finite.

    Args:
        matrix: Array of shape `(n, n)`.

    Returns:
        The matrix, in float64.

    Raises:
        ValueError: If it is not.

    Example:
    >>> real_square(np.eye(2, dtype="float32")).dtype
    dtype('float64')
    """
    matrix = np.asarray(matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(
            f"`matrix` must be square. Received: matrix.shape={matrix.shape}"
        )
    if matrix.dtype.kind not in "biuf":
        raise ValueError(
            f"`matrix` must hold real numbers. Received: matrix.dtype={matrix.dtype}"
        )
    if not np.isfinite(matrix).all():
        raise ValueError("`matrix` must be finite. Received: one that is not")
    return matrix.astype("float64")
