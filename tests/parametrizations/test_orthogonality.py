import numpy as np
import pytest

from keras_ortho.parametrizations import orthogonality_error, unitarity_error


def test_distance():
    assert orthogonality_error(np.eye(4)) == 0
    # W^T W - I = diag(3, 0), of norm 3.
    assert orthogonality_error(np.diag([2.0, -1.0])) == 3
    assert orthogonality_error(np.diag([2.0, 2.0]).astype("float32")) == np.sqrt(18)


def test_computes_in_float64():
    # In float32 the product would round the difference away.
    matrix = np.diag([1 + 2.0**-23]).astype("float32")
    assert orthogonality_error(matrix) == pytest.approx(2.0**-22, rel=1e-6)


def test_distance_from_the_unitary_matrices():
    # W* W - I = diag(3, 0), of norm 3, in either form.
    assert orthogonality_error(np.diag([2j, -1.0])) == 3
    block = np.array([[0.0, 0, 2, 0], [0, -1, 0, 0], [-2, 0, 0, 0], [0, 0, 0, -1]])
    assert unitarity_error(block) == 3
    assert unitarity_error(block.astype("float32")) == 3
