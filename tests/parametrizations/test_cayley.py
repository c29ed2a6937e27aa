"""Both scaled Cayley transforms where they are hard: of a large `A`."""

import itertools

import numpy as np
import pytest
from keras import ops

from keras_ortho.parametrizations import orthogonality_error, scaled_cayley
from keras_ortho.parametrizations.cayley import diagonal_signs, scaled_cayley_unitary
from keras_ortho.parametrizations.skew import num_entries
from tests import reference
from tests.gradients import gradients

pytestmark = pytest.mark.backends

# An odd order has an eigenvalue 0 of `A`, beside large ones.
CASES = [*itertools.product((5, 64, 65), (1e2, 1e4, 1e7, 1e30))]
CASES += [(2, 10.0), (33, 1.0), (170, 0.1), (512, 1.0)]
each = pytest.mark.parametrize("map", [scaled_cayley, scaled_cayley_unitary])


def arguments(map, n, scale, dtype):
    """Random ones, with the matrix `A` in float64."""
    random = np.random.default_rng(n)
    entries = (scale * random.normal(size=num_entries(n))).astype(dtype)
    if map is scaled_cayley:
        skew = reference.skew(entries.astype("float64"), n)
        return [entries, diagonal_signs(n, 0.5).astype(dtype)], skew
    symmetric = (scale * random.normal(size=num_entries(n + 1))).astype(dtype)
    phases = random.uniform(0, 2 * np.pi, size=n).astype(dtype)
    skew = reference.skew_hermitian(
        *(x.astype("float64") for x in (entries, symmetric))
    )
    return [entries, symmetric, phases], skew


@each
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "scale"), CASES)
def test_orthogonal_within_its_bounds(map, n, scale, dtype):
    given, skew = arguments(map, n, scale, dtype)
    kernel = ops.convert_to_numpy(map(*given))
    assert kernel.dtype == dtype
    order, eps = len(kernel), np.finfo(dtype).eps
    # Every singular value of I + A is at least 1, so its condition number is at
    # most sqrt(1 + ||A||^2), and with it the error of the inverse in units of
    # n eps. The last three roundings of n entries near 1 add 3 sqrt(n) eps.
    bound = (order + 3 * np.sqrt(order)) * eps * np.hypot(1, np.linalg.norm(skew, 2))
    # Rounding of A, of a norm of 1 / (8 eps) at most, moves the inverse X by
    # eps ||X A||, ||A|| at most, in the one direction in which X is large, and then
    # W W^T. Two steps of Newton and Schulz leave its fourth power, beside a few n eps.
    norm = np.linalg.norm(skew)
    of_steps = 10 * order * eps + min(eps * norm, 0.125) ** 4
    assert orthogonality_error(kernel) <= min(bound, of_steps)
    if dtype == "float32" and eps * norm <= 0.125 and map is scaled_cayley:
        exact = 2 * np.linalg.inv(np.eye(n) + skew) - np.eye(n)
        np.testing.assert_allclose(kernel, exact * given[1], atol=of_steps)


@each
@pytest.mark.parametrize(("n", "scale"), [(5, 1e2), (64, 1e2), (5, 1e4), (65, 1e4)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradient_at_large_entries(map, n, scale, dtype):
    given, skew = arguments(map, n, scale, dtype)
    inverse = np.linalg.inv(np.eye(n) + skew)
    units = n if map is scaled_cayley else 2 * n
    upstream = np.random.default_rng(1).normal(size=(units, units)).astype(dtype)
    found = gradients(lambda *v: ops.sum(map(*v, *given[-1:]) * upstream), *given[:-1])
    # W = (2 X - I) D and dX = -X dA X.
    if map is scaled_cayley:
        gradient = upstream * given[1]
    else:
        gradient = upstream[:n, :n] + upstream[n:, n:]
        gradient = gradient + 1j * (upstream[:n, n:] - upstream[n:, :n])
        gradient = gradient * np.exp(-1j * given[2].astype("float64"))
    change = -2 * inverse @ gradient.conj().T @ inverse
    places = np.where(np.eye(n), 0.5, 1)[np.triu_indices(n)]
    expected = [
        (change.real.T - change.real)[np.triu_indices(n, 1)],
        -places * (change.imag + change.imag.T)[np.triu_indices(n)],
    ]
    # Relative to the gradient, however small it is, the error is that of the inverse.
    # Without the inverse, from W, it would be eps ||A||^2.
    rounding = (n + np.linalg.norm(skew, 2)) * np.finfo(dtype).eps
    for value, wanted in zip(found, expected, strict=False):
        error = np.linalg.norm(value - wanted)
        assert error <= 4 * rounding * np.linalg.norm(wanted)


@pytest.mark.parametrize(
    ("units", "negative_ones", "count"),
    [
        *[(425, 0.1, 43), (45, 0.7, 32), (5, 0.0, 0)],
        *[(5, 1, 1), (5, 1.0, 5), (8, np.int64(3), 3)],
    ],
)
def test_negative_ones(units, negative_ones, count):
    signs = diagonal_signs(units, negative_ones)
    np.testing.assert_array_equal(signs, [1] * (units - count) + [-1] * count)
