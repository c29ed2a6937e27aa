import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho.parametrizations import (
    orthogonality_error,
    schur_inverse,
    schur_matrix,
    skew_exponential,
)
from keras_ortho.parametrizations.exponential import _squarings
from keras_ortho.parametrizations.schur import MAPS
from keras_ortho.parametrizations.skew import num_entries
from tests import reference
from tests.gradients import gradients

scipy_linalg = pytest.importorskip("scipy.linalg")

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps
STEP = EPS ** (1 / 3)
# The code is the same on every backend, and JAX compiles each operation for each
# size: there, a few do.
ON_TENSORFLOW = keras.backend.backend() == "tensorflow"
SIZES = [1, 2, 3, 8, 33] if ON_TENSORFLOW else [1, 6, 7]


def draw(n, seed=0):
    random = np.random.default_rng(seed)
    shapes = (num_entries(n), num_entries(n), (n + 1) // 2, n // 2)
    return [random.normal(size=shape) for shape in shapes]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", SIZES)
# No squaring, a few, and more than ten.
@pytest.mark.parametrize("scale", [0.0, 0.01, 1.0, 300.0])
def test_exponential(n, scale, dtype):
    entries = scale * np.random.default_rng(n).normal(size=num_entries(n))
    entries = entries.astype(dtype)
    found = ops.convert_to_numpy(skew_exponential(entries))
    assert found.dtype == dtype
    skew = reference.skew(entries, n)
    # The result changes by as much when the matrix changes by one rounding unit.
    norm = max(1.0, np.linalg.norm(skew, 2))
    bound = 10 * np.finfo(dtype).eps * norm
    np.testing.assert_allclose(found, scipy_linalg.expm(skew), atol=bound)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [2, 5, 64] if ON_TENSORFLOW else [5])
@pytest.mark.parametrize("scale", [0.01, 1.0, 300.0, 1e5])
def test_the_exponential_is_orthogonal_however_large_its_argument(n, scale, dtype):
    entries = scale * np.random.default_rng(n).normal(size=num_entries(n))
    found = ops.convert_to_numpy(skew_exponential(entries.astype(dtype)))
    # Before a polish the distance is 2^8 n eps at most, and its square less than
    # rounding; the polish itself rounds sums of n terms twice, n times.
    assert orthogonality_error(found) <= 4 * n * np.finfo(dtype).eps


@pytest.mark.parametrize("n", [2, 3, 6] if ON_TENSORFLOW else [6])
# Without squarings, with a few, and with a polish on the way.
@pytest.mark.parametrize("scale", [0.0, 0.1, 20.0, 3000.0])
def test_gradient_of_the_exponential(n, scale):
    random = np.random.default_rng(n)
    entries = scale * random.normal(size=num_entries(n))
    upstream = random.normal(size=(n, n))
    (found,) = gradients(lambda x: ops.sum(skew_exponential(x) * upstream), entries)
    expected = reference.central_differences(
        lambda x: np.sum(scipy_linalg.expm(reference.skew(x, n)) * upstream),
        entries,
        STEP,
    )
    # An error of the value by `eps` times the norm is divided by the step.
    norm = max(1.0, np.linalg.norm(reference.skew(entries, n), 2))
    np.testing.assert_allclose(found, expected, atol=100 * n * norm * EPS ** (2 / 3))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("value", "count"), [(1e9, None), (np.inf, 64), (np.nan, 64)])
def test_squarings_come_to_an_end(value, count, dtype):
    skew = ops.convert_to_tensor(reference.skew(np.array([value]), 2), dtype)
    found = float(_squarings(skew, 2.0))
    # The least power of two with which no more than the largest norm is left.
    assert found == (count or np.ceil(np.log2(value / 2.0)))


def test_eigenvalues_are_the_radii_and_angles():
    entries, _, radii, angles = draw(6)
    found = schur_matrix(entries, np.zeros(15), np.abs(radii), angles)
    eigenvalues = np.linalg.eigvals(ops.convert_to_numpy(found))
    expected = np.abs(radii) * np.exp(1j * angles)
    expected = np.concatenate([expected, expected.conj()])
    np.testing.assert_allclose(
        np.sort_complex(eigenvalues.round(9)), np.sort_complex(expected.round(9))
    )


def matrices(n):
    """Of all kinds; defective, and nearly so, among them."""
    random = np.random.default_rng(n)
    general = random.normal(size=(n, n))
    basis = np.linalg.qr(general)[0]
    jordan = np.eye(n) + np.eye(n, k=1)
    return {
        "general": general,
        "orthogonal": basis,
        "symmetric": general + general.T,
        "skew": general - general.T,
        "triangular": np.triu(general),
        "zero": np.zeros((n, n)),
        "minus one": -np.eye(n),
        "permutation": np.eye(n)[random.permutation(n)],
        "turned jordan": basis @ jordan @ basis.T,
        "nearly jordan": jordan + 1e-8 * basis,
        "nilpotent": np.eye(n, k=1),
    }


@pytest.mark.parametrize("map", MAPS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 10, 45] if ON_TENSORFLOW else [7])
def test_every_matrix_is_reached(n, map):
    for name, matrix in matrices(n).items():
        free = schur_inverse(matrix, map)
        assert [x.shape for x in free] == [x.shape for x in draw(n)]
        np.testing.assert_allclose(
            schur_matrix(*free, map=map),
            matrix,
            atol=10 * n * EPS * np.linalg.norm(matrix, 2),
            err_msg=name,
        )


def test_real_eigenvalues_before_complex_ones():
    """Blocks have to be moved past an odd number of real eigenvalues."""
    random = np.random.default_rng(0)
    moved = 0
    for _ in range(50):
        triangle = np.triu(random.normal(size=(7, 7)))
        for row in (1, 3, 5):  # Complex pairs in odd rows, their diagonals equal.
            triangle[row + 1, row] = -abs(random.normal()) - 0.1
            triangle[row, row + 1] = 1.0
            triangle[row + 1, row + 1] = triangle[row, row]
        before = scipy_linalg.schur(triangle)[0]
        moved += before[1, 0] == 0 and before[2, 1] != 0
        np.testing.assert_allclose(
            schur_matrix(*schur_inverse(triangle)),
            triangle,
            atol=70 * EPS * np.linalg.norm(triangle, 2),
        )
    assert moved > 0
