"""Products of reflectors, and singular value decompositions made of them."""

import numpy as np
import pytest
from keras import ops

from keras_ortho.parametrizations import orthogonality_error, svd
from keras_ortho.parametrizations.householder import (
    _BLOCK,
    householder_product,
    num_reflector_entries,
)
from tests import reference
from tests.gradients import gradients

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps


def draw(n, m, seed=0):
    return np.random.default_rng(seed).normal(size=num_reflector_entries(n, m))


def product(reflectors, n):
    return ops.convert_to_numpy(householder_product(reflectors, n))


def rows(packed, n):
    found = np.zeros((n, n))
    found[np.triu_indices(n)] = packed
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_the_length_of_a_reflector_plays_no_part(dtype, scale):
    n = 6
    reflectors = draw(n, n).astype(dtype)
    eps = np.finfo(dtype).eps
    expected = product(reflectors, n)
    scaled = (scale * reflectors).astype(dtype)
    np.testing.assert_allclose(product(scaled, n), expected, atol=10 * n * eps)
    found, small = (
        gradients(lambda u: ops.sum(householder_product(u, n)[:, 0]), u)[0]
        for u in (reflectors, scaled)
    )
    np.testing.assert_allclose(
        small * scaled, found * reflectors, atol=100 * n * eps, rtol=100 * eps
    )
    # Orthogonal to each reflector, so that a step lengthens it.
    radial = rows(found, n) * rows(reflectors, n)
    np.testing.assert_allclose(radial.sum(axis=1), 0, atol=100 * n * eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("n", "m"),
    [
        (2, 2),
        (33, 33),
        (170, 16),
        pytest.param(512, 512, marks=pytest.mark.slow_on_jax),
    ],
)
@pytest.mark.parametrize("kind", ["random", "alike", "the same"])
def test_orthogonality(n, m, kind, dtype):
    reflectors = draw(n, m)
    if kind == "alike":  # Nearly the same reflector again and again.
        reflectors = 1 + 1e-3 * reflectors
    elif kind == "the same":
        reflectors = np.ones_like(reflectors)
    matrix = product(reflectors.astype(dtype), n)
    # Each of m reflectors rounds products of n entries by n eps at most; they add up as
    # sqrt(m). Within a block of b alike ones, the rounding of Y Y^T is multiplied by
    # ||T Y||^2, which is 4 b, over the sqrt(b) of errors that differ.
    alike = min(m, _BLOCK)
    bound = (4 * np.sqrt(alike) + np.sqrt(m)) * n * np.finfo(dtype).eps
    assert orthogonality_error(matrix) <= bound


def test_a_zero_reflector_is_the_identity():
    n = 5
    reflectors = draw(n, 4)
    reflectors[n : 2 * n - 1] = 0
    expected = reference.householder(reflectors, n)
    np.testing.assert_allclose(product(reflectors, n), expected, atol=10 * n * EPS)
    np.testing.assert_array_equal(product(np.zeros(15), 5), np.eye(5))
    upstream = np.random.default_rng(0).normal(size=(n, n))
    (found,) = gradients(
        lambda u: ops.sum(householder_product(u, n) * upstream), reflectors
    )
    np.testing.assert_array_equal(found[n : 2 * n - 1], 0)
    assert np.abs(np.delete(found, range(n, 2 * n - 1))).min() > 0


@pytest.mark.parametrize("last", [-0.3, 0.0, 2.0])
@pytest.mark.parametrize("n", [1, 5, 33])
def test_the_gradient_of_a_sign_is_nothing_rather_than_rounding(n, last):
    reflectors = draw(n, n).astype("float32")
    reflectors[-1] = last
    upstream = np.random.default_rng(1).normal(size=(n, n)).astype("float32")
    (found,) = gradients(
        lambda u: ops.sum(householder_product(u, n) * upstream), reflectors
    )
    assert found[-1] == 0


# Rows, columns, reflectors of either side.
@pytest.mark.parametrize(
    "shape", [(1, 1, 1, 1), (2, 2, 2, 1), (6, 3, 3, 3), (3, 6, 2, 3), (12, 9, 4, 9)]
)
def test_is_equation_17(shape):
    """Of matrices of any shape, with the gradient of each variable."""
    rows, columns, left, right = shape
    random = np.random.default_rng(0)
    sizes = (
        num_reflector_entries(rows, left),
        num_reflector_entries(columns, right),
        min(rows, columns),
    )
    variables = [random.normal(size=size) for size in sizes]
    matrix = ops.convert_to_numpy(svd.svd_matrix(*variables, shape[:2]))
    expected = reference.svd(*variables, rows, columns)
    np.testing.assert_allclose(matrix, expected, atol=10 * sum(shape) * EPS)
    upstream = random.normal(size=(rows, columns))
    found = gradients(
        lambda *x: ops.sum(svd.svd_matrix(*x, shape[:2]) * upstream), *variables
    )
    for index, gradient in enumerate(found):

        def by_definition(x, index=index):
            changed = [*variables[:index], x, *variables[index + 1 :]]
            return np.sum(reference.svd(*changed, rows, columns) * upstream)

        along = reference.central_differences(
            by_definition, variables[index], EPS ** (1 / 3)
        )
        # The second derivatives grow as the reflectors, of order one, get shorter.
        np.testing.assert_allclose(gradient, along, atol=1e4 * EPS ** (2 / 3))


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
