"""Products of reflectors where they are hard, and bounded singular values."""

import numpy as np
import pytest
from keras import ops

from keras_ortho.parametrizations import Householder, orthogonality_error, svd
from keras_ortho.parametrizations.householder import _BLOCK, num_reflector_entries
from tests.gradients import gradients
from tests.parametrizations.definitions import householder

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps


def draw(n, m, seed=0):
    return np.random.default_rng(seed).normal(size=num_reflector_entries(n, m))


def product(reflectors, m=None):
    return ops.convert_to_numpy(Householder(m).matrix(reflectors))


def gradient(reflectors, upstream, m=None):
    product = Householder(m).matrix
    return gradients(lambda u: ops.sum(product(u) * upstream), reflectors)[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_the_length_of_a_reflector_plays_no_part(dtype, scale):
    n = 6
    reflectors = draw(n, n).astype(dtype)
    eps = np.finfo(dtype).eps
    expected = product(reflectors)
    scaled = (scale * reflectors).astype(dtype)
    np.testing.assert_allclose(product(scaled), expected, atol=10 * n * eps)
    upstream = np.eye(n, dtype=dtype)[:, :1]
    found = gradient(reflectors, upstream) * reflectors
    small = gradient(scaled, upstream) * scaled
    np.testing.assert_allclose(small, found, atol=100 * n * eps, rtol=100 * eps)
    # Orthogonal to each reflector, so that a step lengthens it.
    radial = np.add.reduceat(found, np.cumsum([0, *range(n, 1, -1)]))
    np.testing.assert_allclose(radial, 0, atol=100 * n * eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("n", "m"),
    [(33, 33), (170, 16), pytest.param(512, 512, marks=pytest.mark.slow_on_jax)],
)
# Random reflectors, nearly the same again and again, and the same.
@pytest.mark.parametrize(("shared", "own"), [(0, 1), (1, 1e-3), (1, 0)])
def test_orthogonality(n, m, shared, own, dtype):
    reflectors = shared + own * draw(n, m)
    matrix = product(reflectors.astype(dtype), m)
    # Each of m reflectors rounds products of n entries by n eps at most; they add up as
    # sqrt(m). Within a block of b alike ones, the rounding of Y Y^T is multiplied by
    # ||T Y||^2, which is 4 b, over the sqrt(b) of errors that differ.
    alike = min(m, _BLOCK)
    bound = (4 * np.sqrt(alike) + np.sqrt(m)) * n * np.finfo(dtype).eps
    assert orthogonality_error(matrix) <= bound


def test_a_zero_reflector_is_the_identity():
    n, m = 5, 4
    zero = slice(n, 2 * n - 1)
    reflectors = draw(n, m)
    reflectors[zero] = 0
    expected = householder(reflectors, m)
    np.testing.assert_allclose(product(reflectors, m), expected, atol=10 * n * EPS)
    np.testing.assert_array_equal(product(np.zeros(15)), np.eye(n))
    found = gradient(reflectors, np.random.default_rng(0).normal(size=(n, n)), m)
    np.testing.assert_array_equal(found[zero], 0)
    assert np.abs(np.delete(found, zero)).min() > 0


@pytest.mark.parametrize("last", [-0.3, 0.0, 2.0])
@pytest.mark.parametrize("n", [1, 5, 33])
def test_the_gradient_of_a_sign_is_nothing_rather_than_rounding(n, last):
    reflectors = draw(n, n).astype("float32")
    reflectors[-1] = last
    upstream = np.random.default_rng(1).normal(size=(n, n)).astype("float32")
    assert gradient(reflectors, upstream)[-1] == 0


@pytest.mark.parametrize(("margin", "center"), [(0.01, 1.0), (0.5, 0.25), (0.0, 2.0)])
def test_singular_values_stay_within_their_margin(margin, center):
    logits = np.linspace(-30, 30, 121)
    found = ops.convert_to_numpy(svd.bounded_singular_values(logits, margin, center))
    expected = center + 2 * margin * (1 / (1 + np.exp(-logits)) - 0.5)
    np.testing.assert_allclose(found, expected, atol=10 * EPS)
    assert np.all(np.abs(found - center) <= margin * (1 + 4 * EPS) + 4 * EPS)
    # And back: the ends of the interval have finite logits, too.
    kind = svd.SVD(None, margin, center)
    again = kind.singular_logits(found, "float64")
    again = svd.bounded_singular_values(again, margin, center)
    np.testing.assert_allclose(again, expected, atol=10 * EPS)
    # Rounded to float32 a value may lie a little outside.
    outside = np.array([center + margin + 1e-7])
    assert np.isfinite(kind.singular_logits(outside, "float32")).all()
    with pytest.raises(ValueError, match="`matrix` must have singular values between"):
        kind.singular_logits(outside, "float64")
