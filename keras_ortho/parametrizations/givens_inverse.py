"""Inverse map of the tunable layers of rotations: finds the angles of a matrix.

With as many layers as units, the tunable style reaches every unitary matrix. Rotations
eliminate the entries below the diagonal, one diagonal after another from the lower left
corner, alternating between neighboring rows and neighboring columns. A diagonal matrix
is left, which is then moved to the right of all rotations. W. R. Clements et al.,
"Optimal design for universal multiport interferometers", Optica 3, 2016.
"""

from collections.abc import Iterator

import numpy as np

from keras_ortho.parametrizations.orthogonality import (
    nearest_orthogonal,
    nearest_unitary,
)

# (first unit of the pair, angle, phase of the second unit)
Rotation = tuple[int, float, float]


def givens_unitary_inverse(
    matrix: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Finds the angles and phases of `n` tunable layers that make a unitary matrix.

    Args:
        matrix: Real or complex array of shape `(n, n)`, `n` even, unitary up to `100 n`
            times the machine epsilon of its dtype. It is replaced by the nearest
            unitary matrix.

    Returns:
        A tuple `(angles, phases, output_phases)` of float64 arrays: the angles and the
        phases of the pairs, both of shape `(n / 2, n - 1)`, and the phases of the
        diagonal, of shape `(n,)`.

    Raises:
        ValueError: If the matrix is not square, of even order, finite and unitary, or
            its dtype is not supported.

    Example:
    >>> angles, phases, output_phases = givens_unitary_inverse(1j * np.eye(2))

    Reference:

    - [Clements et al., 2016](https://doi.org/10.1364/OPTICA.3.001460)
    """
    unitary = nearest_unitary(matrix)
    _check_even(unitary)
    before, after, diagonal = _eliminate(unitary)
    rotations = list(before)
    for first, angle, phase in after:
        # diag(a, b) R(t) diag(1, exp(ip)) = diag(1, b / a) R(t) diag(a, a exp(ip))
        a, b = diagonal[first : first + 2]
        rotations.append((first, angle, float(np.angle(b * a.conj()))))
        diagonal[first : first + 2] = a, a * np.exp(1j * phase)
    angles, phases = _layers(rotations, len(unitary))
    return angles, phases, np.angle(diagonal)


def givens_orthogonal_inverse(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Finds the angles and signs of `n` tunable layers that make an orthogonal matrix.

    Args:
        matrix: Real array of shape `(n, n)`, `n` even, orthogonal up to `100 n` times
            the machine epsilon of its dtype. It is replaced by the nearest orthogonal
            matrix.

    Returns:
        A pair `(angles, signs)` of float64 arrays: the angles of the pairs, of shape
        `(n / 2, n - 1)`, and the signs, of shape `(n,)`.

    Raises:
        ValueError: If the matrix is not square, of even order, real, finite and
            orthogonal, or its dtype is not supported.

    Example:
    >>> angles, signs = givens_orthogonal_inverse(np.array([[0.0, -1.0], [1.0, 0.0]]))
    >>> angles, signs
    (array([[-1.57079633]]), array([1., 1.]))
    """
    orthogonal = nearest_orthogonal(matrix)
    _check_even(orthogonal)
    before, after, diagonal = _eliminate(orthogonal)
    # Two different signs reverse the rotation: D R(t) = R(-t) D.
    moved = [(i, t * diagonal[i] * diagonal[i + 1], 0.0) for i, t, _ in after]
    angles, _ = _layers([*before, *moved], len(orthogonal))
    return angles, diagonal


def _check_even(matrix: np.ndarray) -> None:
    if len(matrix) % 2:
        raise ValueError(
            f"`matrix` must be of even order. Received: matrix.shape={matrix.shape}"
        )


def _corner(size: int) -> Iterator[tuple[bool, int, int]]:
    """Yields `(by_rows, row, column)` of the entries, in order of elimination."""
    for diagonal in range(size - 1):
        by_rows = diagonal % 2 == 0
        for k in range(diagonal + 1):
            if by_rows:
                yield True, size - 1 - diagonal + k, k
            else:
                yield False, size - 1 - k, diagonal - k


def _angles(x: complex, y: complex) -> tuple[float, float]:
    """Finds `t` and `p` with `cos(t) x = exp(-ip) sin(t) y`; `p` is 0 for reals."""
    if np.isrealobj(x):
        return float(np.arctan2(x, y)), 0.0
    return float(np.arctan2(abs(x), abs(y))), float(np.angle(y * np.conj(x)))


def _eliminate(
    matrix: np.ndarray,
) -> tuple[list[Rotation], list[Rotation], np.ndarray]:
    """Factors a matrix into rotations, a diagonal, and more rotations.

    With `R(t) = [[cos, sin], [-sin, cos]]`, the rotations before the diagonal are
    `diag(1, exp(ip)) R(t)`, and those after it `R(t) diag(1, exp(ip))`.
    """
    reduced = matrix.copy()
    before: list[Rotation] = []
    after: list[Rotation] = []
    for by_rows, row, column in _corner(len(matrix)):
        if by_rows:
            pair = reduced[row - 1 : row + 1]
            # The second row becomes sin(t) x + exp(-ip) cos(t) y.
            angle, phase = _angles(-pair[1, column], pair[0, column])
            phase = -phase
            before.append((row - 1, angle, phase))
            cosine, sine = np.cos(angle), np.sin(angle)
            second = _turned(pair[1], -phase)
            pair[:] = cosine * pair[0] - sine * second, sine * pair[0] + cosine * second
        else:
            pair = reduced[:, column : column + 2].T
            # The first column becomes cos(t) x + exp(-ip) sin(t) y.
            angle, phase = _angles(-pair[0, row], pair[1, row])
            after.append((column, angle, phase))
            cosine, sine = np.cos(angle), np.sin(angle)
            second = _turned(pair[1], -phase)
            pair[:] = cosine * pair[0] + sine * second, cosine * second - sine * pair[0]
        reduced[row, column] = 0
    diagonal = np.diag(reduced).copy()
    return before, after[::-1], diagonal / np.abs(diagonal)


def _turned(values: np.ndarray, phase: float) -> np.ndarray:
    return values if np.isrealobj(values) else values * np.exp(1j * phase)


def _layers(rotations: list[Rotation], size: int) -> tuple[np.ndarray, np.ndarray]:
    """Puts each rotation into the first layer in which its pair is free."""
    table = np.zeros((2, size // 2, size - 1))
    free = np.zeros(size, int)  # The first free layer of each unit.
    for first, angle, phase in rotations:
        layer = free[first : first + 2].max()
        layer += (layer + first) % 2  # In even layers pairs begin with even units.
        free[first : first + 2] = layer + 1
        column = first // 2 + (size // 2) * (first % 2)
        table[:, layer // 2, column] = angle, phase
    return table[0], table[1]
