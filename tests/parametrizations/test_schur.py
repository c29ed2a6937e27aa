"""The exponential of a skew-symmetric matrix, at small and at large norms."""

import keras
import numpy as np
import pytest
import scipy.linalg
from keras import ops

from keras_ortho.parametrizations import SkewExponential, orthogonality_error
from keras_ortho.parametrizations.skew import num_entries
from tests import reference
from tests.gradients import gradients

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps
# The code is the same on every backend, and JAX compiles each operation for each
# size: there, a few do.
ON_TENSORFLOW = keras.backend.backend() == "tensorflow"
SIZES = [1, 2, 3, 8, 33, 64] if ON_TENSORFLOW else [1, 6, 7]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", SIZES)
# No squaring, a few, more than ten, and more than a polish is due after.
@pytest.mark.parametrize("scale", [0.0, 0.01, 1.0, 300.0, 1e5])
def test_exponential(n, scale, dtype):
    entries = scale * np.random.default_rng(n).normal(size=num_entries(n))
    entries, eps = entries.astype(dtype), np.finfo(dtype).eps
    found = ops.convert_to_numpy(SkewExponential().matrix(entries))
    assert found.dtype == dtype
    # Before a polish the distance is 2^8 n eps at most, and its square less than
    # rounding; the polish itself rounds sums of n terms twice, n times.
    assert orthogonality_error(found) <= 4 * n * eps
    skew = reference.skew(entries, n)
    # The result changes by as much when the matrix changes by one rounding unit.
    norm = max(1.0, np.linalg.norm(skew, 2))
    np.testing.assert_allclose(found, scipy.linalg.expm(skew), atol=10 * eps * norm)


# Without squarings, with a few, and with a polish on the way.
@pytest.mark.parametrize("scale", [0.0, 0.1, 20.0, 3000.0])
def test_gradient_of_the_exponential(scale):
    n = 6
    random = np.random.default_rng(n)
    entries = scale * random.normal(size=num_entries(n))
    upstream = random.normal(size=(n, n))
    map = SkewExponential().matrix
    (found,) = gradients(lambda x: ops.sum(map(x) * upstream), entries)
    expected = reference.central_differences(
        lambda x: np.sum(scipy.linalg.expm(reference.skew(x, n)) * upstream),
        entries,
        EPS ** (1 / 3),
    )
    # An error of the value by `eps` times the norm is divided by the step.
    norm = max(1.0, np.linalg.norm(reference.skew(entries, n), 2))
    np.testing.assert_allclose(found, expected, atol=100 * n * norm * EPS ** (2 / 3))
