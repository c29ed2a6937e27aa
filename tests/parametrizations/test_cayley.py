import numpy as np
import pytest
from keras import ops

from keras_ortho.parametrizations import orthogonality_error, scaled_cayley
from keras_ortho.parametrizations.cayley import diagonal_signs
from keras_ortho.parametrizations.skew import num_entries
from tests import reference
from tests.gradients import gradients

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps


def cayley64(entries, signs):
    value = scaled_cayley(ops.convert_to_tensor(entries), ops.convert_to_tensor(signs))
    return ops.convert_to_numpy(value)


def test_the_signs_have_no_gradient():
    entries, signs = np.ones(3), np.ones(3)
    found = gradients(
        lambda a, d: ops.sum(scaled_cayley(a, d)) + 0.0 * ops.sum(d), entries, signs
    )
    np.testing.assert_array_equal(found[1], 0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [2, 33, 170, 512])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_orthogonality_within_its_bound(n, scale, dtype):
    # Every singular value of I + A is at least 1, so its condition number is at
    # most sqrt(1 + ||A||^2), and with it the error of the inverse in units of
    # n eps. The last three roundings of n entries near 1 add 3 sqrt(n) eps.
    entries = scale * np.random.default_rng(n).normal(size=num_entries(n))
    norm = np.linalg.norm(reference.skew(entries, n), 2)
    kernel = cayley64(entries.astype(dtype), diagonal_signs(n, 0.5).astype(dtype))
    bound = (n + 3 * np.sqrt(n)) * np.finfo(dtype).eps * np.hypot(1, norm)
    assert orthogonality_error(kernel) <= bound


@pytest.mark.parametrize("n", [3, 5, 64, 65])
@pytest.mark.parametrize("scale", [1e2, 1e4, 1e7, 1e30])
def test_large_entries(n, scale):
    """The order matters: an odd one has an eigenvalue 0 of A, beside large ones."""
    random = np.random.default_rng(n)
    signs = diagonal_signs(n, 0.5)
    entries = (scale * random.normal(size=num_entries(n))).astype("float32")
    kernel = cayley64(entries, signs.astype("float32"))
    # Rounding of A, of a norm of 1 / (8 eps) at most, moves the inverse X by
    # eps ||X A||, ||A|| at most, in the one direction in which X is large, and then
    # W W^T. Two steps of Newton and Schulz leave its fourth power, beside a few n eps.
    eps, skew = np.finfo("float32").eps, reference.skew(entries.astype("float64"), n)
    norm = np.linalg.norm(skew)
    bound = 10 * n * eps + min(eps * norm, 0.125) ** 4
    assert orthogonality_error(kernel) <= bound
    if eps * norm <= 0.125:
        exact = np.linalg.inv(np.eye(n) + skew)
        np.testing.assert_allclose(kernel, (2 * exact - np.eye(n)) * signs, atol=bound)


@pytest.mark.parametrize("n", [5, 64, 65])
@pytest.mark.parametrize("scale", [1e2, 1e4])
def test_gradient_at_large_entries(n, scale):
    random = np.random.default_rng(n)
    upstream, signs = random.normal(size=(n, n)), diagonal_signs(n, 0.5)
    entries = (scale * random.normal(size=num_entries(n))).astype("float32")
    skew = reference.skew(entries, n)
    inverse = np.linalg.inv(np.eye(n) + skew)
    change = -2 * inverse.T @ (upstream * signs) @ inverse.T
    expected = (change - change.T)[np.triu_indices(n, 1)]
    # That this is the derivative: its own derivatives are smaller by 1 / scale.
    direction = random.normal(size=entries.shape)
    step = scale * EPS ** (1 / 3)
    ahead, behind = (
        np.sum(reference.scaled_cayley(entries + s * direction, signs) * upstream)
        for s in (step, -step)
    )
    differences = (ahead - behind) / (2 * step)
    size = np.linalg.norm(expected)
    assert expected @ direction == pytest.approx(differences, abs=1e-3 * size)
    for dtype in ("float32", "float64"):
        (found,) = gradients(
            lambda a, d=dtype: ops.sum(
                scaled_cayley(a, signs.astype(d)) * upstream.astype(d)
            ),
            entries.astype(dtype),
        )
        # Relative to the gradient, however small it is, the error is that of the
        # inverse. Without the inverse, from W, it would be eps ||A||^2.
        rounding = (n + np.linalg.norm(skew, 2)) * np.finfo(dtype).eps
        assert np.linalg.norm(found - expected) <= 2 * rounding * size


def test_the_form_of_the_transform_that_rounding_harms_less():
    """`2 (I + A)^-1 - I` is beside `(I + A)^-1 (I - A)`, in the same precision."""
    n, draws = 100, 5
    ours, by_definition = 0.0, 0.0
    for seed in range(draws):
        entries = 10.0 * np.random.default_rng(seed).normal(size=num_entries(n))
        entries = entries.astype("float32")
        skew = reference.skew(entries, n)
        exact = reference.scaled_cayley(entries, np.ones(n))
        identity = np.eye(n, dtype="float32")
        plus, minus = (
            ops.convert_to_tensor(identity + sign * skew.astype("float32"))
            for sign in (1, -1)
        )
        solved = ops.convert_to_numpy(ops.matmul(ops.inv(plus), minus))
        by_definition += np.linalg.norm(solved - exact)
        kernel = cayley64(entries, np.ones(n, "float32"))
        ours += np.linalg.norm(kernel - exact)
    # I - A, of norm 200, multiplies what rounding adds to the inverse: by 10 at least
    # beside ours, and on an average over draws by no less than half of it.
    assert 4 * ours <= by_definition


@pytest.mark.parametrize(
    ("units", "negative_ones", "count"),
    [
        (170, 0.5, 85),
        (170, 0.7, 119),
        (170, 0.1, 17),
        (425, 0.1, 43),
        (45, 0.7, 32),
        (50, 0.29, 15),
        (190, 95, 95),
        (5, 1, 1),
        (5, 1.0, 5),
        (5, 0, 0),
        (5, 0.0, 0),
        (3, 0.5, 2),
        (8, np.int64(3), 3),
    ],
)
def test_negative_ones(units, negative_ones, count):
    signs = diagonal_signs(units, negative_ones)
    np.testing.assert_array_equal(signs, [1] * (units - count) + [-1] * count)
