"""The real Schur form of a given matrix, as free variables.

Three things are done to the form that LAPACK yields: blocks of complex eigenvalues
are moved to even rows, every 2 x 2 block is rotated until its two diagonal entries
are equal, and columns of the basis change their sign until it is a rotation whose
Cayley transform has small entries. None of them enlarges an error.
"""

import numpy as np

from keras_ortho.extras import require
from keras_ortho.parametrizations.kahan import scaled_cayley_inverse
from keras_ortho.parametrizations.real_matrix import real_square

MAPS = ("exponential", "cayley")


def schur_inverse(
    matrix: np.ndarray, map: str = "exponential"
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Finds the variables with `P (Theta + T) P^T` equal to a given matrix.

    It needs SciPy, which the extra `linalg` installs.

    Args:
        matrix: Any finite real array of shape `(n, n)`.
        map: How `P` is made, `"exponential"` or `"cayley"`. Default:
            `"exponential"`.

    Returns:
        A tuple `(entries, upper, radii, angles)` in float64, as `schur_matrix` takes
        them. The radii are not negative but for the last of an odd order.

    Raises:
        ValueError: If the matrix is not square, not real, or not finite, or there is
            no such map.
        ImportError: If SciPy is not installed.

    Example:
    >>> entries, upper, radii, angles = schur_inverse(np.diag([1.0, 2.0]))
    >>> radii * np.cos(angles)
    array([1.5])

    Reference:

    - [Kerg et al., 2019](https://arxiv.org/abs/1905.12080)
    """
    if map not in MAPS:
        raise ValueError(
            f'`map` must be "exponential" or "cayley". Received: map={map!r}'
        )
    triangle, basis = _aligned_schur(real_square(matrix))
    size = len(triangle)
    cayley, signs = scaled_cayley_inverse(basis)
    # (I + A)^-1 (I - A) D is the basis: changing the signs of its columns by D makes
    # it a rotation, and leaves the form of the triangle.
    triangle = signs[:, None] * triangle * signs
    entries = cayley if map == "cayley" else _logarithm(cayley, size)
    first = 2 * np.arange(size // 2)
    cosines, sines = triangle[first, first], triangle[first + 1, first]
    radii = np.hypot(cosines, sines)
    triangle[first, first + 1] += sines  # `Theta` has `-sines` there.
    if size % 2:
        radii = np.append(radii, triangle[-1, -1])
    return (
        entries,
        triangle[np.triu_indices(size, 1)],
        radii,
        np.arctan2(sines, cosines),
    )


def _aligned_schur(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The real Schur form with blocks at even rows, of equal diagonal entries."""
    scipy_linalg = require("scipy.linalg", extra="linalg")
    triangle, basis = scipy_linalg.schur(matrix, output="real")
    size = len(triangle)
    for i in range(0, size - 1, 2):
        if i + 2 < size and triangle[i + 1, i] == 0 and triangle[i + 2, i + 1] != 0:
            _move_behind(triangle, basis, i)
        _rotate(triangle, basis, i, _equalizer(triangle[i : i + 2, i : i + 2]))
        difference = (triangle[i, i] - triangle[i + 1, i + 1]) / 2
        triangle[i, i] -= difference
        triangle[i + 1, i + 1] += difference
    return triangle, basis


def _rotate(
    triangle: np.ndarray, basis: np.ndarray, start: int, rotation: np.ndarray
) -> None:
    """Changes the basis of a few neighboring rows and columns, in place."""
    part = slice(start, start + len(rotation))
    triangle[part] = rotation.T @ triangle[part]
    triangle[:, part] = triangle[:, part] @ rotation
    basis[:, part] = basis[:, part] @ rotation


def _move_behind(triangle: np.ndarray, basis: np.ndarray, i: int) -> None:
    """Moves the real eigenvalue at row `i` behind the 2 x 2 block that follows it.

    A vector that the block of three leaves alone from the left but for a factor, as
    the last of an orthonormal basis, makes the last row zero but for that factor. The
    last left singular vector of the shifted block is one, to rounding, in every case.
    """
    block = triangle[i : i + 3, i : i + 3]
    left, _, _ = np.linalg.svd(block - block[0, 0] * np.eye(3))
    _rotate(triangle, basis, i, left)
    triangle[i + 2, i : i + 2] = 0


def _equalizer(block: np.ndarray) -> np.ndarray:
    """The rotation that makes the diagonal entries of a 2 x 2 matrix equal."""
    difference = block[0, 0] - block[1, 1]
    angle = np.arctan2(difference, block[0, 1] + block[1, 0]) / 2
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.array([[cosine, sine], [-sine, cosine]])


def _logarithm(cayley: np.ndarray, size: int) -> np.ndarray:
    """The entries of `log((I + A)^-1 (I - A)) = -2 arctan(A)`.

    The arctangent changes no more than its argument, so eigenvectors that are close
    to each other, and therefore not exact, do no harm.
    """
    upper = np.triu_indices(size, 1)
    hermitian = np.zeros((size, size), "complex128")
    hermitian[upper] = 1j * cayley
    hermitian = hermitian + hermitian.conj().T
    values, vectors = np.linalg.eigh(hermitian)
    # A = -i H has the eigenvalues -i v, and arctan(-i v) as a power series of a skew
    # matrix stands for -i arctan(v).
    logarithm = (vectors * (2j * np.arctan(values))) @ vectors.conj().T
    return logarithm.real[upper]
