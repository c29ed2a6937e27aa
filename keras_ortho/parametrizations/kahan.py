"""The inverse of the scaled Cayley transform, after Kahan's theorem.

Every orthogonal matrix is `W = (I + A)^-1 (I - A) D` for some diagonal of signs
`D` and a skew-symmetric `A` whose entries are at most 1 in absolute value.
W. Kahan, "Is there a small skew Cayley transform with zero diagonal?", Linear
Algebra and its Applications 417, 2006; E. O'Dorney, "Minimizing the Cayley
transform of an orthogonal matrix by multiplying by signature matrices", ibid. 448,
2014.
"""

import numpy as np

from keras_ortho.parametrizations.orthogonality import nearest_orthogonal


def scaled_cayley_inverse(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Finds `A` and `D` with `(I + A)^-1 (I - A) D` equal to a given matrix.

    Works for every orthogonal matrix, also for one with the eigenvalue -1, of
    which the plain Cayley transform has no inverse. The pair is not unique.

    Args:
        matrix: Real array of shape `(n, n)`, orthogonal up to `100 n` times the
            rounding unit of its dtype; the nearest orthogonal matrix is used.

    Returns:
        A pair `(entries, signs)` in float64: the strict upper triangle of `A` in
        row order, of shape `(n (n - 1) / 2,)`, none larger than 1 in absolute
        value beyond rounding; and the diagonal of `D`, of shape `(n,)`.

    Raises:
        ValueError: If the matrix is not square, not of float16, float32, float64
            or integers, not finite, or not orthogonal.

    Example:
    >>> scaled_cayley_inverse(-np.eye(2))
    (array([0.]), array([-1., -1.]))
    """
    orthogonal = nearest_orthogonal(matrix)
    signs = _pivoting_signs(orthogonal)
    skew = _inverse_cayley(orthogonal * signs)
    # Exchanging changes `skew` in place of solving anew, and rounding adds up;
    # so solve again at the end, and look again.
    while (flips := _flips_to_small_entries(skew)).any():
        signs = np.where(flips, -signs, signs)
        skew = _inverse_cayley(orthogonal * signs)
    return skew[np.triu_indices(len(skew), 1)], signs


def _pivoting_signs(orthogonal: np.ndarray) -> np.ndarray:
    """Chooses the signs so that `I + W D` can be eliminated without pivoting.

    Column j of `I` has a 1 in row j and zeros above and below it, so the row
    operations of the earlier columns leave it alone. The pivot of `I + W D` is
    therefore 1 plus `d_j` times a number that `W` under the same operations
    holds: with the sign of that number it is at least 1.
    """
    reduced = orthogonal.copy()
    signs = np.ones(len(orthogonal))
    for j in range(len(orthogonal)):
        signs[j] = -1.0 if reduced[j, j] < 0 else 1.0
        factors = signs[j] * reduced[j + 1 :, j] / (1.0 + abs(reduced[j, j]))
        reduced[j + 1 :] -= np.outer(factors, reduced[j])
    return signs


def _inverse_cayley(rotation: np.ndarray) -> np.ndarray:
    """The skew-symmetric `A = (I - Z) (I + Z)^-1 = 2 (I + Z)^-1 - I`."""
    identity = np.eye(len(rotation))
    skew = 2.0 * np.linalg.inv(identity + rotation) - identity
    return (skew - skew.T) / 2


def _flips_to_small_entries(skew: np.ndarray) -> np.ndarray:
    """The signs to flip until no entry of `A` exceeds 1 in absolute value.

    Flipping the signs i and j multiplies `|det(I + W D)|`, which is bounded, by
    `a_ij^2`: while some entry exceeds 1 there is a flip that helps, and there is
    an end to them. It changes `A` by an exchange of the rows and columns i and j
    (a principal pivot), which costs a rank-two update rather than a new solve.
    """
    size = len(skew)
    skew = skew.copy()
    flips = np.zeros(size, bool)
    # An entry may exceed 1 by rounding alone, which no flip improves.
    limit = 1.0 + 100 * size * np.finfo("float64").eps
    while True:
        i, j = np.unravel_index(np.abs(skew).argmax(), skew.shape)
        if abs(skew[i, j]) <= limit:
            return flips
        pair = [i, j]
        flips[pair] = ~flips[pair]
        pivot = np.linalg.inv(skew[np.ix_(pair, pair)])
        rows = pivot @ skew[pair]
        skew += skew[pair].T @ rows
        skew[pair] = rows
        skew[:, pair] = -rows.T
        skew[np.ix_(pair, pair)] = pivot
