"""The restricted-capacity unitary matrix of the uRNN, `7n` free reals.

    W = D_1 F R_1 P D_2 F^-1 R_2 D_3

for row vectors: `D` diagonals of phases, `F` the unitary discrete Fourier transform,
`R = I - 2 v v* / |v|^2` complex Householder reflections and `P` a fixed permutation.
Arjovsky, Shah and Bengio, "Unitary evolution recurrent neural networks", ICML 2016.
"""

import numpy as np
from keras import ops

from keras_ortho.backend.angles import cos, sin
from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.arithmetic import divide
from keras_ortho.parametrizations.complex_rows import product, turn
from keras_ortho.parametrizations.reflectors import scaled_rows


def _fourier_rows(size: int) -> np.ndarray:
    """The unitary Fourier matrix `exp(-2 pi i j k / n) / sqrt(n)` as rows."""
    index = np.arange(size)
    # Reduced first, so that the angle keeps its precision.
    angles = 2 * np.pi * (np.outer(index, index) % size) / size
    return np.concatenate([np.cos(angles), -np.sin(angles)], axis=1) / np.sqrt(size)


def _reflect(rows: Tensor, vector: Tensor) -> Tensor:
    """`M (I - 2 v v* / |v|^2)`, as a rank-one update of `M`."""
    real, imaginary = ops.split(vector, 2)
    # Its products with [a | b] are Re (a + ib) v and Im (a + ib) v; its transpose's
    # with those are [Re | Im] of the multiple of v*.
    columns = ops.stack(
        [
            ops.concatenate([real, -imaginary]),
            ops.concatenate([imaginary, real]),
        ],
        axis=1,
    )
    along = ops.matmul(rows, columns)
    along = divide(2.0 * along, ops.sum(vector * vector))
    return rows - ops.matmul(along, ops.transpose(columns))


def restricted_unitary(
    phases: Tensor, reflectors: Tensor, permutation: Tensor
) -> Tensor:
    """The composition `W = D_1 F R_1 P D_2 F^-1 R_2 D_3`, made once as a matrix.

    The diagonals and reflections cost `O(n^2)` each; one of the two transforms is a
    product of matrices, the other only scales the rows of `F`.

    Args:
        phases: Tensor of shape `(3, n)`: the angles of the diagonals, in radians,
            float32 or float64.
        reflectors: Tensor of shape `(2, 2n)`: `[Re v | Im v]` of the reflections, of
            any length; zeros reflect nothing.
        permutation: Tensor of shape `(n,)`, of integers: entry `j` of `z P` is entry
            `permutation[j]` of `z`.

    Returns:
        The rows `[Re W | Im W]` of the unitary matrix, of shape `(n, 2n)` and the
        dtype of `phases`.

    Raises:
        ValueError: If the shapes do not agree.

    Example:
    >>> rows = restricted_unitary(np.zeros((3, 4)), np.ones((2, 8)), np.arange(4))

    Reference:

    - [Arjovsky et al., 2016](https://proceedings.mlr.press/v48/arjovsky16.html),
      equation 6
    """
    size = permutation.shape[0]
    found = (tuple(phases.shape), tuple(reflectors.shape))
    if found != ((3, size), (2, 2 * size)):
        raise ValueError(
            "`phases` and `reflectors` must have the shapes (3, n) and (2, 2n) for a "
            f"permutation of n. Received: phases.shape={found[0]}, "
            f"reflectors.shape={found[1]}, permutation.shape={(size,)}"
        )
    reflectors = scaled_rows(reflectors)
    cosine, sine = cos(phases), sin(phases)
    fourier = ops.cast(_fourier_rows(size), phases.dtype)
    real, imaginary = ops.split(fourier, 2, axis=1)
    rows = turn(fourier, cosine[0][:, None], sine[0][:, None])
    rows = _reflect(rows, reflectors[0])
    both = ops.concatenate([permutation, permutation + size])
    rows = ops.take(rows, both, axis=1)
    rows = turn(rows, cosine[1], sine[1])
    rows = product(rows, ops.concatenate([real, -imaginary], axis=1))
    rows = _reflect(rows, reflectors[1])
    return turn(rows, cosine[2], sine[2])
