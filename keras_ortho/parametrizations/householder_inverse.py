"""The reflectors of a given orthogonal matrix: Householder's QR factorization.

The reflector `u_n` takes the first column of the matrix to `e_1`, the next one the
second column of what is left, and so on; what is left in the end is the identity.
"""

import numpy as np

from keras_ortho.parametrizations.orthogonality import nearest_orthogonal


def householder_inverse(matrix: np.ndarray) -> np.ndarray:
    """Finds the `n` reflectors whose product is a given orthogonal matrix.

    Every orthogonal matrix has some, of either determinant, which the sign in the
    last place decides: `det W = (-1)^(n-1) sign(u_1)`, as none of those that are
    returned is zero. A product of fewer reflectors, `m < n`, is determined by its
    first `m` columns and has the determinant `(-1)^m`; these matrices have no inverse
    here, as finding them from a matrix that has been rounded is ill-conditioned.

    Args:
        matrix: Real array of shape `(n, n)`, orthogonal up to `100 n` times the
            rounding unit of its dtype; the nearest orthogonal matrix is used.

    Returns:
        The packed reflectors, an array of shape `(n (n + 1) / 2,)`, float64, each of
        length 1.

    Raises:
        ValueError: If the matrix is not orthogonal.

    Example:
    >>> householder_inverse(np.array([[0.0, 1.0], [1.0, 0.0]]))
    array([-0.70710678,  0.70710678,  1.        ])
    """
    return frame_reflectors(nearest_orthogonal(matrix))


def frame_reflectors(frame: np.ndarray) -> np.ndarray:
    """Finds the `p` reflectors whose product has given first columns.

    Args:
        frame: Array of shape `(n, p)` with orthonormal columns, `p <= n`, float64.

    Returns:
        The packed reflectors, an array of shape `(n p - p (p - 1) / 2,)`, each of
        length 1.

    Example:
    >>> frame_reflectors(np.array([[0.0], [1.0]]))
    array([-0.70710678,  0.70710678])
    """
    rest = frame
    reflectors = []
    for _ in range(frame.shape[1]):
        reflector = _reflector(rest[:, 0])
        reflectors.append(reflector)
        rest = rest - 2 * np.outer(reflector, reflector @ rest)
        rest = rest[1:, 1:]
    return np.concatenate(reflectors)


def _reflector(column: np.ndarray) -> np.ndarray:
    """The reflector of length 1 that takes a column of length 1 to `e_1`.

    Where the column is `e_1` already, that is any orthogonal to it.
    """
    head, tail = column[0], column[1:]
    if not tail.size:
        return np.where(column < 0, -1.0, 1.0)
    length = np.linalg.norm(tail)
    reflector = np.zeros_like(column)
    if length > 0:
        # `(head - 1) / length`, which rounding would spoil where `head` is near 1.
        reflector[0] = -length / (1 + head) if head > 0 else (head - 1) / length
        reflector[1:] = tail / length
    else:
        reflector[0 if head < 0 else 1] = 1.0
    return reflector / np.linalg.norm(reflector)
