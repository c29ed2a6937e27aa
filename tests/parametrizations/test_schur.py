"""The exponential of a skew-symmetric matrix, at small and at large norms."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho.parametrizations import orthogonality_error
from keras_ortho.parametrizations.exponential import skew_exponential
from keras_ortho.parametrizations.skew import num_entries
from tests import reference
from tests.gradients import gradients

scipy_linalg = pytest.importorskip("scipy.linalg")

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps
# The code is the same on every backend, and JAX compiles each operation for each
# size: there, a few do.
ON_TENSORFLOW = keras.backend.backend() == "tensorflow"
SIZES = [1, 2, 3, 8, 33] if ON_TENSORFLOW else [1, 6, 7]


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


# Without squarings, with a few, and with a polish on the way.
@pytest.mark.parametrize("scale", [0.0, 0.1, 20.0, 3000.0])
def test_gradient_of_the_exponential(scale):
    n = 6
    random = np.random.default_rng(n)
    entries = scale * random.normal(size=num_entries(n))
    upstream = random.normal(size=(n, n))
    (found,) = gradients(lambda x: ops.sum(skew_exponential(x) * upstream), entries)
    expected = reference.central_differences(
        lambda x: np.sum(scipy_linalg.expm(reference.skew(x, n)) * upstream),
        entries,
        EPS ** (1 / 3),
    )
    # An error of the value by `eps` times the norm is divided by the step.
    norm = max(1.0, np.linalg.norm(reference.skew(entries, n), 2))
    np.testing.assert_allclose(found, expected, atol=100 * n * norm * EPS ** (2 / 3))
