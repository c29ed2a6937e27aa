import numpy as np
import pytest
from keras import ops

from keras_ortho.parametrizations import svd
from keras_ortho.parametrizations.householder import num_reflector_entries
from tests import reference
from tests.gradients import gradients

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps
# Rows, columns, reflectors of either side.
SHAPES = [(1, 1, 1, 1), (2, 2, 2, 1), (6, 3, 3, 3), (3, 6, 2, 3), (12, 9, 4, 9)]


def draw(rows, columns, left, right, seed=0):
    random = np.random.default_rng(seed)
    return (
        random.normal(size=num_reflector_entries(rows, left)),
        random.normal(size=num_reflector_entries(columns, right)),
        random.normal(size=min(rows, columns)),
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_is_equation_17(shape):
    left, right, values = draw(*shape)
    matrix = ops.convert_to_numpy(svd.svd_matrix(left, right, values, shape[:2]))
    expected = reference.svd(left, right, values, *shape[:2])
    np.testing.assert_allclose(matrix, expected, atol=10 * sum(shape) * EPS)
    found = np.linalg.svd(matrix, compute_uv=False)
    expected = np.sort(np.abs(values))[::-1]
    np.testing.assert_allclose(found, expected, atol=10 * sum(shape) * EPS)


@pytest.mark.parametrize("shape", SHAPES)
def test_gradient(shape):
    """Of matrices of any shape, along a direction in each variable."""
    variables = draw(*shape)
    upstream = np.random.default_rng(1).normal(size=shape[:2])
    found = gradients(
        lambda *x: ops.sum(svd.svd_matrix(*x, shape[:2]) * upstream), *variables
    )
    for index, gradient in enumerate(found):

        def by_definition(x, index=index):
            changed = [*variables[:index], x, *variables[index + 1 :]]
            return np.sum(reference.svd(*changed, *shape[:2]) * upstream)

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
    # And back, unless rounding has moved a value to an end of the interval.
    near = np.abs(logits) <= 5
    again = svd.bounded_logits(found, margin, center)[near]
    # The values are near the center, the logits of the size of their distance to it.
    atol = 100 * EPS * np.exp(5) * center / (margin or 1.0)
    np.testing.assert_allclose(again, logits[near] * (margin > 0), atol=atol)


def test_the_ends_of_the_interval_have_finite_logits():
    ends = np.array([0.99, 1.01])
    logits = svd.bounded_logits(ends, 0.01, 1.0)
    assert np.isfinite(logits).all()
    again = ops.convert_to_numpy(svd.bounded_singular_values(logits, 0.01, 1.0))
    np.testing.assert_allclose(again, ends, atol=10 * EPS)
    # Rounded to float32 a value may lie a little outside.
    outside = np.array([1.01 + 1e-7])
    assert np.isfinite(svd.bounded_logits(outside, 0.01, 1.0, "float32")).all()
    with pytest.raises(ValueError, match="values of `matrix` must lie between"):
        svd.bounded_logits(outside, 0.01, 1.0)


@pytest.mark.parametrize("shape", [(1, 1), (7, 7), (1, 5), (5, 1), (40, 60)])
@pytest.mark.parametrize("rank", [1, None])
def test_inverse(shape, rank):
    """Theorem 4: every matrix, of any rank, by `min(m, n)` reflectors on a side."""
    random = np.random.default_rng(0)
    rank = rank or min(shape)
    matrix = random.normal(size=(shape[0], rank)) @ random.normal(size=(rank, shape[1]))
    left, right, values = svd.svd_inverse(matrix)
    assert len(left) == num_reflector_entries(shape[0], min(shape))
    assert len(right) == num_reflector_entries(shape[1], min(shape))
    np.testing.assert_allclose(
        reference.svd(left, right, values, *shape),
        matrix,
        atol=10 * max(shape) * EPS * np.linalg.norm(matrix, 2),
    )


def test_spectral_deviation():
    assert svd.spectral_deviation(np.eye(4)) == 0
    assert svd.spectral_deviation(np.diag([0.5, -1.25])) == pytest.approx(0.5)
    assert svd.spectral_deviation(np.eye(3, 2), center=0.75) == pytest.approx(0.25)
