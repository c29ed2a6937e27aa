import numpy as np
import pytest
from keras import ops

from keras_ortho.parametrizations import (
    householder_inverse,
    householder_product,
    orthogonality_error,
)
from keras_ortho.parametrizations.householder import (
    _BLOCK,
    frame_reflectors,
    num_reflector_entries,
)
from tests import reference
from tests.gradients import gradients
from tests.reference import random_orthogonal

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps


def draw(n, m, seed=0):
    return np.random.default_rng(seed).normal(size=num_reflector_entries(n, m))


def product(reflectors, n, columns=None):
    return ops.convert_to_numpy(householder_product(reflectors, n, columns))


@pytest.mark.parametrize(("n", "m"), [(2, 2), (5, 3), (5, 5)])
def test_first_columns(n, m):
    expected = reference.householder(draw(n, m), n)
    for columns in range(1, n + 1):
        found = product(draw(n, m), n, columns)
        np.testing.assert_allclose(found, expected[:, :columns], atol=10 * n * EPS)


def test_gradient_of_one_reflector_is_equation_15():
    random = np.random.default_rng(0)
    u, h, g = random.normal(size=(3, 6))
    (found,) = gradients(
        lambda u: ops.sum(ops.matmul(householder_product(u, 6), h[:, None])[:, 0] * g),
        u,
    )
    uu, uh, ug = u @ u, u @ h, u @ g
    expected = -2 * uh / uu * g - 2 * ug / uu * h + 4 * (uh / uu) * (ug / uu) * u
    np.testing.assert_allclose(found, expected, atol=100 * EPS)
    # What the last term is for: the length has no effect.
    assert found @ u == pytest.approx(0, abs=100 * EPS)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_the_length_of_a_reflector_plays_no_part(dtype, scale):
    n = 6
    reflectors = draw(n, n).astype(dtype)
    eps = np.finfo(dtype).eps
    expected = product(reflectors, n)
    scaled = (scale * reflectors).astype(dtype)
    np.testing.assert_allclose(product(scaled, n), expected, atol=10 * n * eps)
    (found,) = gradients(lambda u: ops.sum(householder_product(u, n)[:, 0]), reflectors)
    (small,) = gradients(lambda u: ops.sum(householder_product(u, n)[:, 0]), scaled)
    np.testing.assert_allclose(
        small * scaled, found * reflectors, atol=100 * n * eps, rtol=100 * eps
    )
    # Orthogonal to each reflector, so that a step lengthens it.
    radial = reference_rows(found, n) * reference_rows(reflectors, n)
    np.testing.assert_allclose(radial.sum(axis=1), 0, atol=100 * n * eps)


def reference_rows(packed, n):
    rows = np.zeros((n, n))
    rows[np.triu_indices(n)] = packed
    return rows


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
    np.testing.assert_array_equal(product(np.zeros(9), 5), np.eye(5))
    np.testing.assert_array_equal(product(np.zeros(15), 5), np.eye(5))
    upstream = np.random.default_rng(0).normal(size=(n, n))
    (found,) = gradients(
        lambda u: ops.sum(householder_product(u, n) * upstream), reflectors
    )
    assert np.isfinite(found).all()
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


SPECIAL = [
    np.eye(6),
    -np.eye(6),
    np.eye(5)[::-1],
    np.eye(7)[[3, 0, 6, 1, 5, 2, 4]],
    np.diag([1.0, -1.0, 1.0, 1.0, -1.0]),
    np.kron(np.eye(2), random_orthogonal(3, 0)),
]


@pytest.mark.parametrize("n", [1, 2, 3, 8, 50, 200])
@pytest.mark.parametrize("determinant", [-1, 1])
def test_inverse(n, determinant):
    matrix = random_orthogonal(n, n)
    matrix[0] *= determinant * np.linalg.slogdet(matrix)[0]
    assert_round_trip(matrix)


@pytest.mark.parametrize("matrix", SPECIAL)
def test_inverse_of_special_matrices(matrix):
    """Also where a column needs no reflector there is one, that can be trained."""
    assert_round_trip(matrix)


def test_inverse_near_the_identity():
    for distance in 10.0 ** -np.arange(0, 20, 2):
        skew = distance * reference.skew(draw(5, 2)[:6], 4)
        assert_round_trip(np.linalg.solve(np.eye(4) + skew, np.eye(4) - skew))


def assert_round_trip(matrix):
    n = len(matrix)
    reflectors = householder_inverse(matrix)
    assert reflectors.shape == (num_reflector_entries(n, n),)
    lengths = np.linalg.norm(reference_rows(reflectors, n), axis=1)
    np.testing.assert_allclose(lengths, 1, atol=10 * EPS)
    np.testing.assert_allclose(
        reference.householder(reflectors, n), matrix, atol=10 * n * EPS
    )


@pytest.mark.parametrize(("n", "p"), [(2, 1), (7, 3), (50, 49)])
def test_reflectors_of_a_frame(n, p):
    frame = random_orthogonal(n, 0)[:, :p]
    found = reference.householder(frame_reflectors(frame), n)
    np.testing.assert_allclose(found[:, :p], frame, atol=10 * n * EPS)


@pytest.mark.parametrize("tail", [0.0, 1e-150, 1e-160, 1e-300])
def test_the_reflector_of_nearly_the_negative_first_unit_vector(tail):
    matrix = -np.array([[1.0, tail], [-tail, 1.0]])
    reflectors = frame_reflectors(matrix)
    assert np.all(np.isfinite(reflectors))
    found = ops.convert_to_numpy(householder_product(reflectors, 2))
    assert np.abs(found - matrix).max() < 100 * np.finfo("float64").eps
