"""Distances from orthogonality and unitarity, and nearest and random such matrices."""

import numpy as np
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_all_finite, check_count, check_real, check_square
from keras_ortho.parametrizations.arithmetic import complex_matrix, rounding_tolerance


def orthogonality_error(matrix: Tensor) -> float:
    """Computes the distance from orthogonality, `||W^T W - I||_F`, in float64.

    For a complex matrix, it is the distance from unitarity, `||W* W - I||_F`; for its
    real form, use `unitarity_error`.

    Args:
        matrix: Tensor or array of shape `(n, n)`.

    Returns:
        The Frobenius norm, 0 for an orthogonal matrix.

    Raises:
        ValueError: If the matrix is not square.

    Example:
    >>> orthogonality_error(np.eye(3))
    0.0

    Reference:
    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
      figure 4
    """
    matrix = np.asarray(ops.convert_to_numpy(matrix))
    matrix = matrix.astype("complex128" if np.iscomplexobj(matrix) else "float64")
    check_square("matrix", matrix)
    return float(np.linalg.norm(matrix.conj().T @ matrix - np.eye(len(matrix))))


def unitarity_error(matrix: Tensor) -> float:
    """Computes the distance from unitarity, `||W* W - I||_F`, of a real form.

    Args:
        matrix: Tensor or array `[[Re W, Im W], [-Im W, Re W]]`, of shape `(2n, 2n)`, as
            the cells of complex units return it.

    Returns:
        The norm, computed in float64, 0 for a unitary matrix.

    Raises:
        ValueError: If the matrix does not have this shape and form.

    Example:
    >>> unitarity_error(np.array([[0.0, 1.0], [-1.0, 0.0]]))  # i
    0.0
    """
    matrix = np.asarray(ops.convert_to_numpy(matrix))
    check_square("matrix", matrix)
    return orthogonality_error(complex_matrix("matrix", matrix, len(matrix) // 2))


def nearest_orthogonal(matrix: np.ndarray) -> np.ndarray:
    """Checks that a matrix is orthogonal up to rounding, and removes the rounding."""
    check_real("matrix", np.asarray(matrix))
    return nearest_unitary(matrix, "orthogonal").real


def nearest_unitary(matrix: np.ndarray, kind: str = "unitary") -> np.ndarray:
    """Checks that a matrix is unitary up to rounding, and removes the rounding."""
    matrix = np.asarray(matrix)
    check_square("matrix", matrix)
    check_all_finite("matrix", matrix)
    tolerance = rounding_tolerance(len(matrix), matrix.dtype)
    distance = orthogonality_error(matrix)
    if distance > tolerance:
        raise ValueError(
            f"`matrix` must be {kind}: ||W* W - I||_F at most {tolerance:.1e} in "
            f"{matrix.dtype}. Give it in the dtype in which it was computed, or the "
            "nearest such matrix, `scipy.linalg.polar(matrix)[0]`. Received: a matrix "
            f"with a distance of {distance:.1e}"
        )
    wide = matrix.astype(np.result_type(matrix.dtype, "float64"))
    left, _, right = np.linalg.svd(wide)
    return (left @ right).astype("complex128")


def random_orthogonal(size: int, seed: int | None = None) -> np.ndarray:
    """Draws an orthogonal matrix uniformly (Haar measure).

    Args:
        size: Order `n`, a positive integer.
        seed: Random seed. Default: `None`, a different one at each call.

    Returns:
        Array of shape `(n, n)`, float64.

    Raises:
        ValueError: If `size` is not a positive integer.

    Example:
    >>> orthogonality_error(random_orthogonal(64, seed=0)) < 1e-12
    True

    Reference:
    - [Mezzadri, 2007](https://arxiv.org/abs/math-ph/0609050)
    """
    size = check_count("size", size)
    return _haar(np.random.default_rng(seed).normal(size=(size, size)))


def random_unitary(size: int, seed: int | None = None) -> np.ndarray:
    """Draws a unitary matrix uniformly (Haar measure).

    Args:
        size: Order `n`, a positive integer.
        seed: Random seed. Default: `None`, a different one at each call.

    Returns:
        Array of shape `(n, n)`, complex128.

    Raises:
        ValueError: If `size` is not a positive integer.

    Example:
    >>> orthogonality_error(random_unitary(64, seed=0)) < 1e-12
    True
    """
    size = check_count("size", size)
    real, imaginary = np.random.default_rng(seed).normal(size=(2, size, size))
    return _haar(real + 1j * imaginary)


def _haar(normal: np.ndarray) -> np.ndarray:
    """Returns the Q factor of a QR factorization whose R has a positive diagonal."""
    q, r = np.linalg.qr(normal)
    return q * (r.diagonal() / np.abs(r.diagonal()))
