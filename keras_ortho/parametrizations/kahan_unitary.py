"""The inverse of the scaled Cayley transform of unitary matrices, after Kahan.

Every unitary matrix is `W = (I + A)^-1 (I - A) D` for some diagonal of phases `D` and
a skew-Hermitian `A` whose entries are at most 1 in modulus, those on the diagonal
zero: where `|det(I + W D*)|` is largest. W. Kahan, "Is there a small skew Cayley
transform with zero diagonal?", Linear Algebra and its Applications 417, 2006. The
largest determinant is a limit; a good one is found in a bounded number of steps.
"""

import numpy as np

from keras_ortho.parametrizations.orthogonality import nearest_unitary

# While an entry of `A` exceeds its bound, there is a step that multiplies the
# determinant by a factor: sqrt(1 + 1/4) for the diagonal, 25/16 - 1/4 off it. It is
# at least 1 at the start and at most 2^n, so there are at most 6.3 n steps.
DIAGONAL_BOUND = 0.5
BOUND = 1.25


def scaled_cayley_unitary_inverse(
    matrix: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Finds `A` and `D` with `(I + A)^-1 (I - A) D` equal to a given matrix.

    Works for every unitary matrix, also for one with the eigenvalue -1, of which the
    plain Cayley transform has no inverse. The pair is not unique.

    Args:
        matrix: Real or complex array of shape `(n, n)`, unitary up to `100 n` times
            the rounding unit of its dtype; the nearest unitary matrix is used.

    Returns:
        A tuple `(skew, symmetric, phases)` in float64, as `scaled_cayley_unitary`
        takes them, of shapes `(n (n - 1) / 2,)`, `(n (n + 1) / 2,)` and `(n,)`. No
        entry of `A` is larger than 1.25 in modulus, none on its diagonal than 0.5;
        phases are in `(-pi, pi]`.

    Raises:
        ValueError: If the matrix is not square, not finite, or not unitary.

    Example:
    >>> scaled_cayley_unitary_inverse(-np.eye(1))
    (array([], dtype=float64), array([0.]), array([3.14159265]))
    """
    unitary = nearest_unitary(matrix)
    size = len(unitary)
    diagonal = _pivoting_phases(unitary)
    inverse = _inverse(unitary, diagonal)
    # Steps change the inverse in place of solving anew, and rounding adds up; so
    # solve again at the end, and look again.
    while True:
        turned = _turn_to_small_entries(inverse, diagonal)
        if turned is diagonal:
            break
        diagonal = turned
        inverse = _inverse(unitary, diagonal)
    skew = 2.0 * inverse - np.eye(size)
    skew = (skew - skew.conj().T) / 2
    return (
        skew.real[np.triu_indices(size, 1)],
        skew.imag[np.triu_indices(size)],
        np.angle(diagonal),
    )


def _inverse(unitary: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """`(I + W D*)^-1`, which is `(I + A) / 2`."""
    return np.linalg.inv(np.eye(len(unitary)) + unitary * diagonal.conj())


def _pivoting_phases(unitary: np.ndarray) -> np.ndarray:
    """Chooses the phases so that `I + W D*` can be eliminated without pivoting.

    As for signs: the pivot is 1 plus `conj(d_j)` times a number that `W` under the
    same operations holds. With the phase of that number its modulus is at least 1.
    """
    reduced = unitary.copy()
    diagonal = np.ones(len(unitary), "complex128")
    for j in range(len(unitary)):
        modulus = abs(reduced[j, j])
        if modulus > 0:
            diagonal[j] = reduced[j, j] / modulus
        factors = diagonal[j].conj() * reduced[j + 1 :, j] / (1.0 + modulus)
        reduced[j + 1 :] -= np.outer(factors, reduced[j])
    return diagonal


def _turn_to_small_entries(inverse: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """Turns phases until no entry of `A` exceeds its bound.

    Turning one phase so that `a_jj = iy` becomes zero multiplies `|det(I + W D*)|` by
    `sqrt(1 + y^2)`; turning two by half a circle multiplies it by
    `||a_ij|^2 - y_i y_j|`.

    Returns:
        New phases, or `diagonal` itself if nothing had to be done.
    """
    size = len(inverse)
    slack = 100 * size * np.finfo("float64").eps
    while True:
        skew = 2.0 * inverse - np.eye(size)
        heights = skew.diagonal().imag
        sizes = np.abs(skew)
        np.fill_diagonal(sizes, 0)
        i, j = np.unravel_index(sizes.argmax(), sizes.shape)
        if np.abs(heights).max() > DIAGONAL_BOUND + slack:
            chosen = [int(np.abs(heights).argmax())]
            y = heights[chosen]
            turns = (1 + 1j * y) / (1 - 1j * y)
        elif sizes[i, j] > BOUND + slack:
            chosen, turns = [int(i), int(j)], np.array([-1.0, -1.0])
        else:
            return diagonal
        diagonal = diagonal.copy()
        diagonal[chosen] *= turns.conj()
        # Sherman, Morrison and Woodbury, with (I + Z)^-1 Z = I - (I + Z)^-1.
        columns = np.eye(size)[:, chosen] - inverse[:, chosen]
        small = np.diag(1 / (turns - 1)) + columns[chosen]
        inverse = inverse - columns @ np.linalg.solve(small, inverse[chosen])
