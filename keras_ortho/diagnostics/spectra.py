"""Eigenvalues and singular values, also for matrices that are not finite."""

from collections.abc import Callable

import numpy as np


def eigenvalues(matrices: np.ndarray) -> np.ndarray:
    """Computes the eigenvalues of each matrix.

    Args:
        matrices: Array of shape `(..., n, n)`.

    Returns:
        Array of shape `(..., n)`, complex128. NaN for a matrix that is not finite.

    Example:
    >>> eigenvalues(np.array([[0.0, np.inf], [1.0, 0.0]]))
    array([nan+0.j, nan+0.j])
    """
    return _of_finite(matrices, np.linalg.eigvals).astype("complex128")


def singular_values(matrices: np.ndarray) -> np.ndarray:
    """Computes the singular values of each matrix.

    Args:
        matrices: Array of shape `(..., n, n)`.

    Returns:
        Array of shape `(..., n)`, in descending order. NaN for a matrix that is not
        finite.

    Example:
    >>> singular_values(np.diag([1.0, -3.0]))
    array([3., 1.])
    """
    return _of_finite(matrices, lambda each: np.linalg.svd(each, compute_uv=False))


def _of_finite(
    matrices: np.ndarray, function: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    finite = np.isfinite(matrices).all(axis=(-2, -1))[..., None]
    values = function(np.where(finite[..., None], matrices, 0))
    return np.where(finite, values, np.nan)
