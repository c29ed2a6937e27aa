"""The scaled Cayley transform of complex matrices: free reals to a unitary matrix.

    W = (I + A)^-1 (I - A) D

with `A = S + i Y` skew-Hermitian: `S` real and skew-symmetric, `Y` real and symmetric;
and `D` a diagonal of trained phases. Maduranga, Helfrich and Ye, "Complex unitary
recurrent neural networks using scaled Cayley transform", AAAI 2019.

The inverse follows Kahan: every unitary matrix has this form, for some `D` and an `A`
whose entries are at most 1 in modulus, those on the diagonal zero: where
`|det(I + W D*)|` is largest. W. Kahan, "Is there a small skew Cayley transform with
zero diagonal?", Linear Algebra and its Applications 417, 2006. The largest determinant
is a limit; a good one is found in a bounded number of steps.
"""

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend import with_gradient
from keras_ortho.backend.elementary import cos, sin
from keras_ortho.backend.precision import wide_tensor
from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.complex_rows import (
    adjoint,
    block,
    of_left_half,
    product,
    turn,
)
from keras_ortho.parametrizations.orthogonality import nearest_unitary, random_unitary
from keras_ortho.parametrizations.skew import (
    HenaffSkew,
    matrix_size,
    num_entries,
    skew_matrix,
    upper_entries,
)

# While an entry of `A` exceeds its bound, there is a step that multiplies the
# determinant by a factor: sqrt(1 + 1/4) for the diagonal, 25/16 - 1/4 off it. It is
# at least 1 at the start and at most 2^n, so there are at most 6.3 n steps.
DIAGONAL_BOUND = 0.5
BOUND = 1.25


def symmetric_matrix(entries: Tensor) -> Tensor:
    """Builds a symmetric matrix from its upper triangle.

    Args:
        entries: Tensor of shape `(n (n + 1) / 2,)`, in row order, the diagonal
            included.

    Returns:
        Tensor of shape `(n, n)` and the same dtype.

    Example:
    >>> symmetric_matrix(np.array([1.0, 2.0, 3.0]))
    [[1, 2], [2, 3]]
    """
    size = matrix_size(entries.shape[0]) - 1
    rows, columns = np.triu_indices(size)
    position = np.zeros((size, size), "int32")
    position[rows, columns] = np.arange(len(rows))
    position[columns, rows] = position[rows, columns]
    return ops.take(entries, position)


def _forward(skew: Tensor, symmetric: Tensor) -> tuple[Tensor, Tensor]:
    # [Re A | Im A], whose block is real and skew-symmetric.
    rows = ops.concatenate([skew_matrix(skew), symmetric_matrix(symmetric)], axis=1)
    size = rows.shape[0]
    identity = ops.eye(2 * size, dtype=rows.dtype)
    inverse = of_left_half(ops.solve(identity + block(rows), identity[:, :size]))
    # One step of Newton and Schulz, as in the real transform.
    transpose = adjoint(inverse)
    defect = inverse + transpose - 2.0 * product(transpose, inverse)
    inverse = inverse + (product(inverse, defect) - 0.5 * defect)
    return inverse, inverse


def _backward(inverse: Tensor, upstream: Tensor) -> tuple[Tensor, Tensor]:
    # dX = -X dA X. With G = dL/dRe X + i dL/dIm X a change of A changes L by
    # Re tr(Q dA), Q = -X G* X: nothing needs to be factorized again.
    q = -product(product(inverse, adjoint(upstream)), inverse)
    real, imaginary = ops.split(q, 2, axis=1)
    skew = upper_entries(ops.transpose(real) - real)
    # An entry off the diagonal stands in two places.
    places = 1.0 - 0.5 * ops.eye(inverse.shape[0], dtype=inverse.dtype)
    symmetric = -places * (imaginary + ops.transpose(imaginary))
    return skew, upper_entries(symmetric, diagonal=True)


# The rows of X = (I + A)^-1
_shifted_inverse = with_gradient(_forward, _backward)


def scaled_cayley_unitary(skew: Tensor, symmetric: Tensor, phases: Tensor) -> Tensor:
    """The scaled Cayley transform `W = (I + A)^-1 (I - A) D`, unitary.

    One factorization of a real matrix of order `2n` serves the value and the
    gradient; a step of Newton and Schulz takes away what rounding adds to it. The block
    of `I + A` has singular values of at least 1, as `I + A` has.

    Args:
        skew: Tensor of shape `(n (n - 1) / 2,)`: the strict upper triangle of
            `Re A` in row order, float32 or float64.
        symmetric: Tensor of shape `(n (n + 1) / 2,)`: the upper triangle of `Im A`,
            the diagonal included, in row order.
        phases: Tensor of shape `(n,)`: the angles of the diagonal of `D`, in
            radians.

    Returns:
        The unitary matrix as the real `[[Re W, Im W], [-Im W, Re W]]`, of shape
        `(2n, 2n)` and the dtype of the arguments.

    Raises:
        ValueError: If the shapes do not agree, or the dtype is another.

    Example:
    >>> scaled_cayley_unitary(np.zeros(0), np.array([1.0]), np.array([0.0]))  # -i
    [[0, -1], [1, 0]]

    Reference:

    - [Maduranga et al., 2019](https://arxiv.org/abs/1811.04142), theorem 1
    """
    skew = wide_tensor("skew", skew)
    symmetric = wide_tensor("symmetric", symmetric)
    phases = wide_tensor("phases", phases)
    size = phases.shape[0]
    found = (tuple(skew.shape), tuple(symmetric.shape))
    if found != ((num_entries(size),), (num_entries(size + 1),)):
        raise ValueError(
            "`skew` and `symmetric` must hold n (n - 1) / 2 and n (n + 1) / 2 free "
            f"entries for the n phases. Received: skew.shape={found[0]}, "
            f"symmetric.shape={found[1]}, phases.shape={tuple(phases.shape)}"
        )
    inverse = _shifted_inverse(skew, symmetric)
    # (I + A)^-1 (I - A) = 2 (I + A)^-1 - I: rounding harms the right side less.
    identity = ops.eye(size, 2 * size, dtype=inverse.dtype)
    return block(turn(2.0 * inverse - identity, cos(phases), sin(phases)))


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


@keras.saving.register_keras_serializable(package="keras_ortho")
class ScaledCayleyUnitary(Parametrization):
    """All unitary matrices, by the scaled Cayley transform: scuRNN's.

    Example:
    >>> ScaledCayleyUnitary().distance(1j * np.eye(3))
    0.0
    """

    is_complex = True
    takes = "skew entries"
    full_at_zero = True

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the free entries of `A` and the phases of `D`."""
        skew, symmetric = num_entries(size), num_entries(size + 1)
        phases = keras.initializers.RandomUniform(0.0, 2 * math.pi)
        return [
            FreeVariable("recurrent_skew_real", (skew,), initializer or HenaffSkew()),
            FreeVariable(
                "recurrent_skew_imag", (symmetric,), keras.initializers.Zeros()
            ),
            FreeVariable("recurrent_phases", (size,), phases),
        ]

    def matrix(self, *values: Tensor) -> Tensor:
        """Makes `W = (I + A)^-1 (I - A) D` in its real form."""
        return scaled_cayley_unitary(*values)

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds `A` and `D`, of any unitary matrix."""
        return scaled_cayley_unitary_inverse(matrix)

    def sample(self, size: int, seed: int | None = None) -> np.ndarray:
        """Draws a unitary matrix uniformly (Haar measure)."""
        return random_unitary(size, seed)
