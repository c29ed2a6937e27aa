"""Antisymmetric matrices with diffusion: free entries to a matrix, and back.

    W = M - gamma I

with `M` skew-symmetric, given by the `n (n - 1) / 2` entries of its strict upper
triangle in row order, and a diffusion `gamma` that is not trained. All eigenvalues of
`W` have the real part `-gamma`. Chang, Chen, Haber and Chi, "AntisymmetricRNN: A
dynamical system view on recurrent neural networks", ICLR 2019.
"""

import numpy as np
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.cayley import skew_matrix
from keras_ortho.parametrizations.real_matrix import real_square


def diffused(matrix: Tensor, diffusion: float) -> Tensor:
    """Subtracts the diffusion from the diagonal of a matrix.

    Args:
        matrix: Tensor of shape `(n, n)`.
        diffusion: The number `gamma`.

    Returns:
        `M - gamma I`, a tensor of the same shape and dtype.

    Example:
    >>> diffused(np.ones((2, 2)), 0.25)
    [[0.75, 1], [1, 0.75]]
    """
    return matrix - diffusion * ops.eye(matrix.shape[0], dtype=matrix.dtype)


def antisymmetric(entries: Tensor, diffusion: float = 0.0) -> Tensor:
    """Makes `W = M - gamma I` with a skew-symmetric `M`.

    Args:
        entries: Tensor of shape `(n (n - 1) / 2,)`: the strict upper triangle of
            `M` in row order, floating.
        diffusion: The number `gamma`. Default: 0.

    Returns:
        Tensor of shape `(n, n)` and the dtype of `entries`.

    Raises:
        ValueError: If no matrix has that many entries.

    Example:
    >>> antisymmetric(np.array([2.0]), diffusion=0.5)
    [[-0.5, 2], [-2, -0.5]]

    Reference:

    - [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), equation 12
    """
    return diffused(skew_matrix(entries), diffusion)


def antisymmetry_error(matrix: Tensor, diffusion: float = 0.0) -> float:
    """The distance `||M + M^T||_F` of `M = W + gamma I` from skew symmetry.

    It is exactly 0 for a matrix of `antisymmetric` without diffusion, whatever its
    precision, and otherwise the rounding of the diagonal.

    Args:
        matrix: Tensor or array of shape `(n, n)`, the matrix `W`.
        diffusion: The number `gamma`. Default: 0.

    Returns:
        The Frobenius norm, computed in float64.

    Raises:
        ValueError: If the matrix is not square.

    Example:
    >>> antisymmetry_error(np.array([[0.0, 3.0], [-3.0, 0.0]]))
    0.0
    """
    matrix = np.asarray(ops.convert_to_numpy(matrix), "float64")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"`matrix` must be square. Received: matrix.shape={matrix.shape}"
        )
    skew = matrix + diffusion * np.eye(len(matrix))
    return float(np.linalg.norm(skew + skew.T))


def antisymmetric_inverse(matrix: np.ndarray, diffusion: float = 0.0) -> np.ndarray:
    """Finds the entries of `M` in `W = M - gamma I`.

    Args:
        matrix: Real array of shape `(n, n)` with the real part of all eigenvalues
            at `-diffusion`: `W + gamma I` is skew-symmetric up to `100 n` times the
            rounding unit of its dtype, relative to its largest entry. The
            skew-symmetric part is used.
        diffusion: The number `gamma`. Default: 0.

    Returns:
        Array of shape `(n (n - 1) / 2,)`, float64.

    Raises:
        ValueError: If the matrix is not square, real and finite, or not of that form.

    Example:
    >>> antisymmetric_inverse(np.array([[-0.5, 2.0], [-2.0, -0.5]]), diffusion=0.5)
    array([2.])
    """
    matrix = np.asarray(matrix)
    skew = real_square(matrix)
    error = antisymmetry_error(skew, diffusion)
    kind = matrix.dtype if matrix.dtype.kind == "f" else "float64"
    largest = max(np.abs(matrix).max(initial=0.0), diffusion)
    tolerance = 100 * len(matrix) * np.finfo(kind).eps * largest
    if error > tolerance:
        raise ValueError(
            "`matrix` must be skew-symmetric but for a diagonal of "
            f"-diffusion = {-diffusion}: M = W + diffusion I with ||M + M^T||_F at "
            f"most {tolerance:.1e}. Received: a matrix with a distance of {error:.1e}"
        )
    return ((skew - skew.T) / 2)[np.triu_indices(len(matrix), 1)]
