"""How far a matrix is from the orthogonal ones."""

import numpy as np
from keras import ops

from keras_ortho.backend.types import Tensor


def orthogonality_error(matrix: Tensor) -> float:
    """The distance from orthogonality `||W^T W - I||_F`, computed in float64.

    The measure that the papers report. For a matrix that `scaled_cayley` made in
    a precision with machine epsilon `eps` it stays below
    `n eps sqrt(1 + ||A||_2^2)`: rounding in the inverse of `I + A` grows with the
    condition number, and as every singular value of `I + A` is at least 1, that
    is at most the square root.

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
    matrix = np.asarray(ops.convert_to_numpy(matrix), "float64")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"`matrix` must be square. Received: matrix.shape={matrix.shape}"
        )
    return float(np.linalg.norm(matrix.T @ matrix - np.eye(len(matrix))))
