"""Distances from orthogonality and unitarity, and nearest and random such matrices."""

import numpy as np
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_all_finite, check_count, check_square
from keras_ortho.parametrizations.arithmetic import complex_matrix, rounding_tolerance


def orthogonality_error(matrix: Tensor) -> float:
    """Computes the distance from orthogonality, `||W^T W - I||_F`, in float64.

    The papers report this measure. For a complex matrix, it is the distance from
    unitarity, `||W* W - I||_F`. For the real form in which cells return the matrix of
    complex units, use `unitarity_error`.

    For a matrix that `scaled_cayley` computed with machine epsilon `eps`, the error
    stays below `(n + 3 sqrt(n)) eps sqrt(1 + ||A||_2^2)`: rounding errors in the
    inverse of `I + A` grow with its condition number, which is at most the square root
    because all singular values of `I + A` are at least 1. This holds while
    `eps ||A||_2` is less than 1; beyond that, rounding removes `I` from `I + A`.

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
        matrix: Tensor or array of shape `(2n, 2n)`, `[[Re W, Im W], [-Im W, Re W]]`, as
            the cells of complex units return it.

    Returns:
        The Frobenius norm, computed in float64, 0 for a unitary matrix.

    Raises:
        ValueError: If the matrix does not have this shape and form.

    Example:
    >>> unitarity_error(np.array([[0.0, 1.0], [-1.0, 0.0]]))  # i
    0.0
    """
    matrix = np.asarray(ops.convert_to_numpy(matrix))
    units = matrix.shape[0] // 2 if matrix.ndim else 0
    if matrix.shape != (2 * units, 2 * units):
        raise ValueError(
            "`matrix` must have the shape (2n, 2n). "
            f"Received: matrix.shape={matrix.shape}"
        )
    return orthogonality_error(complex_matrix("matrix", matrix, units))


def nearest_orthogonal(matrix: np.ndarray) -> np.ndarray:
    """Checks that a matrix is orthogonal up to rounding, and removes the rounding."""
    return _nearest(matrix, "orthogonal").astype("float64")


def nearest_unitary(matrix: np.ndarray) -> np.ndarray:
    """Checks that a matrix is unitary up to rounding, and removes the rounding."""
    return _nearest(matrix, "unitary").astype("complex128")


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


def _nearest(matrix: np.ndarray, kind: str) -> np.ndarray:
    matrix = np.asarray(matrix)
    check_square("matrix", matrix)
    if matrix.dtype.kind in "biu":
        matrix = matrix.astype("float64")
    known, numbers = ["float16", "float32", "float64"], "real"
    if kind == "unitary":
        known, numbers = [*known, "complex64", "complex128"], "real or complex"
    if matrix.dtype not in known:
        raise ValueError(
            f"`matrix` must contain {numbers} numbers of 16 (float16), 32 or 64 bits. "
            f"Received: matrix.dtype={matrix.dtype}"
        )
    dtype = matrix.dtype
    tolerance = rounding_tolerance(len(matrix), dtype)
    matrix = matrix.astype(np.result_type(matrix.dtype, "float64"))
    check_all_finite("matrix", matrix)
    distance = orthogonality_error(matrix)
    if not distance <= tolerance:
        measure = "||W^T W - I||_F" if kind == "orthogonal" else "||W* W - I||_F"
        raise ValueError(
            f"`matrix` must be {kind}: {measure} at most {tolerance:.1e} in {dtype}. "
            "Give it in the dtype in which it was computed, or the nearest such "
            "matrix, `scipy.linalg.polar(matrix)[0]`. Received: a matrix with a "
            f"distance of {distance:.1e}"
        )
    left, _, right = np.linalg.svd(matrix)
    return left @ right
