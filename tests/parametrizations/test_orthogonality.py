"""Distances from sets of matrices."""

import numpy as np
import pytest

from keras_ortho.parametrizations import (
    antisymmetry_error,
    orthogonality_error,
    unitarity_error,
)
from keras_ortho.parametrizations.arithmetic import complex_matrix
from tests import reference

IMAGINARY = np.diag([2j, -1.0])  # W* W - I = diag(3, 0), of norm 3.


@pytest.mark.parametrize(
    ("measure", "matrix", "expected"),
    [
        (orthogonality_error, np.eye(4), 0),
        (orthogonality_error, np.diag([2.0, -1.0]), 3),
        (orthogonality_error, np.diag([2.0, 2.0]).astype("float32"), np.sqrt(18)),
        # In float32 the product would round the difference away.
        (orthogonality_error, np.diag([1 + 2.0**-23]).astype("float32"), 2.0**-22),
        (orthogonality_error, IMAGINARY, 3),
        (unitarity_error, reference.complex_block(IMAGINARY), 3),
        (antisymmetry_error, np.array([[1.0, 2.0], [-2.0, 0.0]]), 2),
        (lambda w: antisymmetry_error(w, 0.5), np.eye(2) / -2, 0),
    ],
)
def test_distance(measure, matrix, expected):
    assert measure(matrix) == pytest.approx(expected, rel=1e-6)


def test_a_complex_matrix_in_both_forms():
    matrix = IMAGINARY.copy()
    matrix[1, 0] = complex(0.0, np.nan)  # Of a model that has diverged.
    for form in (matrix, reference.complex_block(matrix)):
        found = complex_matrix("matrix", form, 2)
        np.testing.assert_array_equal(found.imag, matrix.imag)
