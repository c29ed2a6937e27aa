import itertools

import numpy as np
import pytest
from keras import ops

from keras_ortho.parametrizations import (
    dominant_eigenpair,
    eigenpair_report,
    normalize_spectral_radius,
    spectral_radius,
)
from tests import reference
from tests.gradients import gradients, traced, value_and_gradient

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps

eigenpair = traced(dominant_eigenpair)
_traced = traced(lambda matrix: value_and_gradient(spectral_radius, matrix))


def radius_and_gradient(matrix):
    """Both, of a program that is traced once for each shape."""
    found = _traced(ops.convert_to_tensor(matrix))
    return float(found[0]), ops.convert_to_numpy(found[1])


def rotation(angle, radius=1.0):
    c, s = np.cos(angle), np.sin(angle)
    return radius * np.array([[c, -s], [s, c]])


def block_diagonal(*blocks):
    blocks = [np.atleast_2d(block) for block in blocks]
    matrix = np.zeros((sum(map(len, blocks)),) * 2)
    start = 0
    for block in blocks:
        end = start + len(block)
        matrix[start:end, start:end] = block
        start = end
    return matrix


def mixed(matrix, random, departure=0.0):
    """A similar matrix, of vectors that are orthogonal but for the departure."""
    n = len(matrix)
    vectors = np.linalg.qr(random.normal(size=(n, n)))[0]
    vectors = vectors @ (np.eye(n) + departure * random.normal(size=(n, n)) / n**0.5)
    return vectors @ matrix @ np.linalg.inv(vectors)


def gaussian(n, random):
    return random.normal(size=(n, n)) / n**0.5


def symmetric(n, random):
    matrix = gaussian(n, random)
    return matrix + matrix.T


def trained_a_little(n, random):
    """As the short-term matrix starts, and small steps away from it."""
    pairs = [
        rotation(random.uniform(0, np.pi / 2), random.uniform(-1, 1))
        for _ in range(n // 2)
    ]
    matrix = block_diagonal(*pairs, *[random.uniform(-1, 1)] * (n % 2))
    return matrix + 1e-3 * random.normal(size=(n, n))


def not_normal(n, random):
    return gaussian(n, random) + 2 * np.triu(gaussian(n, random), 1)


def far_from_normal(n, random, departure=3.0):
    """Pairs of eigenvalues spread over the disk, and much above the diagonal."""
    above = departure * np.triu(random.normal(size=(n, n)), 2) / n**0.5
    for i in range(0, n - 1, 2):
        radius = random.uniform() ** 0.5
        above[i : i + 2, i : i + 2] = rotation(random.uniform(0, np.pi), radius)
    return mixed(above, random)


def nearly_tied(*blocks):
    """The given blocks of modulus 1 or a little less, and smaller eigenvalues."""

    def make(n, random):
        rest = n - sum(len(np.atleast_2d(block)) for block in blocks)
        rest = random.uniform(-0.9, 0.9, rest)
        return mixed(block_diagonal(*blocks, *rest), random, 0.3)

    return make


def by_eig(matrix):
    """Radius and gradient `(alpha Re S + beta Im S) / rho` from all eigenvectors."""
    values, right = np.linalg.eig(matrix.astype("float64"))
    i = np.argmax(np.abs(values))
    # The rows of the inverse are left eigenvectors with v* u = 1.
    s = np.outer(np.linalg.inv(right)[i], right[:, i])
    return np.abs(values[i]), (np.conj(values[i]) / np.abs(values[i]) * s).real


def residual(matrix):
    """The larger of ||T u - lambda u|| and ||v* T - lambda v*||, over ||T||_F."""
    value, u, v = (ops.convert_to_numpy(x).astype("float64") for x in eigenpair(matrix))
    assert value[1] >= 0
    value, u, v = value[0] + 1j * value[1], u[0] + 1j * u[1], v[0] + 1j * v[1]
    eps = 10 * float(np.finfo(matrix.dtype).eps)
    np.testing.assert_allclose(np.linalg.norm([u, v], axis=1), 1, atol=eps)
    matrix = matrix.astype("float64")
    right = np.linalg.norm(matrix @ u - value * u)
    left = np.linalg.norm(v.conj() @ matrix - value * v.conj())
    return max(right, left) / np.linalg.norm(matrix)


KINDS = [gaussian, symmetric, trained_a_little, not_normal, far_from_normal]
TIES = {
    "pairs 1e-2": nearly_tied(rotation(0.8), rotation(2.0, 0.99)),
    "pairs 1e-5": nearly_tied(rotation(0.8), rotation(2.0, 1 - 1e-5)),
    "real and pair": nearly_tied(-1.0, rotation(2.0, 1 - 1e-5)),
    "pair and real": nearly_tied(rotation(2.0), 1 - 1e-5),
    "two signs": nearly_tied(1.0, -1 + 1e-5),
    "three pairs": nearly_tied(*(rotation(x, 1 - 5e-5 * x) for x in (0.4, 1.2, 2.0))),
}
# Two real eigenvectors are known to rounding over the gap of their eigenvalues.
CLOSE = {
    "close 1e-2": (nearly_tied(1.0, 0.99), 1e-2),
    "close 1e-5": (nearly_tied(1.0, 1 - 1e-5), 1e-5),
    "three real": (nearly_tied(1.0, -0.999, 0.999), 1e-3),
}
CASES = {
    **{f"{kind.__name__} {n}": (kind, n, 1) for kind in KINDS for n in (3, 10)},
    **{f"{kind.__name__} 94": (kind, 94, 1) for kind in KINDS[:-1]},
    **{name: (kind, 20, 1) for name, kind in TIES.items()},
    **{name: (kind, 20, gap) for name, (kind, gap) in CLOSE.items()},
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow_on_jax
def test_against_lapack(case, dtype):
    kind, n, gap = CASES[case]
    eps = float(np.finfo(dtype).eps)
    for seed in range(3):
        matrix = kind(n, np.random.default_rng(seed)).astype(dtype)
        expected, gradient = by_eig(matrix)
        # The norm of the gradient is the condition number of the eigenvalue.
        condition = np.linalg.norm(gradient) * np.linalg.norm(matrix) / expected
        radius, found = radius_and_gradient(matrix)
        tolerance = 2e-5 if dtype == "float32" else 1e-12
        assert radius == pytest.approx(
            expected, rel=min(tolerance, 50 * condition * eps)
        )
        assert residual(matrix) <= 10 * n**0.5 * eps, seed
        if gap > 100 * eps:
            error = np.linalg.norm(found - gradient) / np.linalg.norm(gradient)
            tolerance = 2e-2 if dtype == "float32" else 1e-6
            assert error <= min(tolerance, 1000 * n * condition * eps / gap), seed
            assert eigenpair_report(matrix)["gradient_found"]


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 720])
def test_large_matrices(n):
    for kind in (gaussian, trained_a_little):
        matrix = kind(n, np.random.default_rng(n)).astype("float32")
        radius, found = radius_and_gradient(matrix)
        expected, gradient = by_eig(matrix)
        assert radius == pytest.approx(expected, rel=2e-5)
        assert np.linalg.norm(found - gradient) <= 1e-3 * np.linalg.norm(gradient)


@pytest.mark.slow
@pytest.mark.parametrize("departure", [2.5, 3.5])
def test_very_far_from_normal(departure):
    """Their powers grow a thousandfold: too much for float32 at this order."""
    matrix = far_from_normal(94, np.random.default_rng(94), departure)
    radius, found = radius_and_gradient(matrix)
    expected, gradient = by_eig(matrix)
    assert radius == pytest.approx(expected, rel=1e-9)
    # The inverse of all eigenvectors, in the expected gradient, is known to 1e-7.
    assert np.linalg.norm(found - gradient) <= 1e-6 * np.linalg.norm(gradient)
    radius, found = radius_and_gradient(matrix.astype("float32"))
    assert 0.5 * expected <= radius <= 2 * expected
    assert np.isfinite(found).all()


def with_dominant(kind, n, seed=0):
    """A matrix of no special form whose dominant eigenvalue is real, or a pair."""
    random = np.random.default_rng(seed)
    block = {"positive": 1.5, "negative": -1.5, "pair": rotation(1.0, 1.5)}[kind]
    rest = random.uniform(-1, 1, n - len(np.atleast_2d(block)))
    return mixed(block_diagonal(block, *rest), random, departure=0.5)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("kind", ["positive", "negative", "pair"])
@pytest.mark.parametrize("n", [2, 5])
def test_gradient_of_the_normalized_matrix(kind, n, epsilon):
    matrix = with_dominant(kind, n, seed=1)
    upstream = np.random.default_rng(2).normal(size=(n, n))

    def by_definition(t):
        return np.sum(upstream * t) / (np.abs(np.linalg.eigvals(t)).max() + epsilon)

    def function(t):
        return ops.sum(normalize_spectral_radius(t, True, epsilon)[0] * upstream)

    (found,) = gradients(function, matrix)
    expected = reference.central_differences(by_definition, matrix, EPS ** (1 / 3))
    # Differences are exact to eps^(2/3), times third derivatives.
    np.testing.assert_allclose(found, expected, atol=1000 * n * EPS ** (2 / 3))
    # The formula of the paper, its inner factor 1 / rho rather than 1 / (rho + eps).
    rho = np.abs(np.linalg.eigvals(matrix)).max()
    normalized = matrix / (rho + epsilon)
    inner = np.sum(upstream * normalized) * by_eig(matrix)[1]
    np.testing.assert_allclose(
        found, (upstream - inner) / (rho + epsilon), atol=1000 * n * EPS
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["enrnn_m10", "enrnn_m11"])
@pytest.mark.slow_on_jax
def test_parity_with_the_authors_code(data_dir, name, dtype):
    data = np.load(data_dir / "parity" / f"{name}.npz")
    n, eps = len(data["T"]), np.finfo("float32").eps
    matrix, upstream = data["T"].astype(dtype), data["grad_W"].astype(dtype)
    value = ops.convert_to_numpy(dominant_eigenpair(matrix)[0])
    expected = data["dominant_eigenvalue"] * [
        1,
        np.sign(data["dominant_eigenvalue"][1]),
    ]
    np.testing.assert_allclose(value, expected, atol=100 * n * eps)
    normalized, divided = normalize_spectral_radius(matrix)
    assert bool(divided)
    np.testing.assert_allclose(normalized, data["W_S"], atol=10 * n * eps)
    (found,) = gradients(
        lambda t: ops.sum(normalize_spectral_radius(t)[0] * upstream), matrix
    )
    scale = np.abs(data["grad_T"]).max()
    np.testing.assert_allclose(found, data["grad_T"], atol=10 * n * eps * scale)


def assert_homogeneous(matrix, radius, rel=1e-7):
    """As the radius is homogeneous, so is whatever stands for its gradient."""
    found, gradient = radius_and_gradient(matrix)
    assert found == pytest.approx(radius, rel=rel)
    assert np.isfinite(gradient).all()
    size = max(1.0, np.linalg.norm(gradient) * np.linalg.norm(matrix))
    error = abs(np.sum(gradient * matrix) - found)
    assert error <= 1e4 * len(matrix) * np.finfo(matrix.dtype).eps * size
    return gradient


def test_order_one():
    for value in (2.0, -2.0):
        gradient = assert_homogeneous(np.array([[value]]), 2.0)
        np.testing.assert_array_equal(gradient, [[np.sign(value)]])


@pytest.mark.parametrize(
    "matrix",
    [
        *(np.zeros((n, n)) for n in (1, 2, 8)),
        np.diag(np.ones(4), 1),
        np.array([[1.0, -1.0], [1.0, -1.0]]),
        np.triu(np.random.default_rng(0).normal(size=(40, 40)), 1),
    ],
    ids=["order 1", "order 2", "order 8", "shift", "dense", "triangle"],
)
def test_nilpotent(matrix):
    np.testing.assert_array_equal(assert_homogeneous(matrix, 0.0), 0)
    for epsilon in (0.0, 0.1):
        normalized, divided = normalize_spectral_radius(matrix, True, epsilon)
        assert bool(divided)
        np.testing.assert_allclose(normalized, matrix / (epsilon or 1), rtol=4 * EPS)


@pytest.mark.slow_on_jax
def test_two_eigenvalues_that_tie():
    gradient = assert_homogeneous(np.array([[0.0, 1.0], [4.0, 0.0]]), 2.0)
    # That of the eigenvalue 2, with u = (1, 2) and v = (2, 1).
    np.testing.assert_allclose(gradient, [[0.5, 1], [0.25, 0.5]], atol=10 * EPS)
    for n in (2, 8):
        gradient = assert_homogeneous(-3 * np.eye(n), 3.0)
        # Minus a mean of projectors on eigenvectors.
        assert np.linalg.eigvalsh(-gradient).min() >= -10 * n * EPS


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [2, 8])
def test_defective(n, seed):
    """The eigenvalue 1 twice, with one eigenvector."""
    rest = np.linspace(-0.5, 0.5, n - 2)
    block = block_diagonal(np.array([[1.0, 1.0], [0.0, 1.0]]), *rest)
    matrix = mixed(block, np.random.default_rng(seed))
    # Rounding of T by sqrt(n) ||T||_2 eps, of about 4 eps, moves such eigenvalues by
    # the root of that.
    gradient = assert_homogeneous(matrix, 1.0, rel=10 * EPS**0.5)
    # Bounded by the condition number that counts as known.
    assert np.linalg.norm(gradient) <= 2 / (n * EPS)


@pytest.mark.parametrize(
    "matrix",
    [
        *(
            np.linalg.qr(np.random.default_rng(0).normal(size=(n, n)))[0]
            for n in (8, 20)
        ),
        np.roll(np.eye(8), 1, axis=0),
        nearly_tied(rotation(0.4), rotation(1.3))(8, np.random.default_rng(1)),
        np.diag([1.0, -1.0, 1.0, -1.0]),
    ],
    ids=["orthogonal 8", "orthogonal 20", "permutation", "two pairs", "signs"],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.slow_on_jax
def test_more_than_two_that_tie(matrix, dtype):
    """The gradient that only scales the matrix."""
    matrix = matrix.astype(dtype)
    eps = float(np.finfo(dtype).eps)
    gradient = assert_homogeneous(matrix, 1.0, rel=100 * len(matrix) * eps)
    if not eigenpair_report(matrix)["gradient_found"]:
        expected = matrix / np.sum(matrix**2)
        np.testing.assert_allclose(gradient, expected, atol=100 * len(matrix) * eps)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exact_ties_of_small_matrices(dtype):
    """Diagonal ones of both signs, and permutations."""
    signs = [np.diag(each) for each in itertools.product([1.0, -1.0], repeat=3)]
    orders = [np.eye(4)[list(each)] for each in itertools.permutations(range(4))]
    for matrix in [*signs, *orders[::5]]:
        radius = float(spectral_radius(matrix.astype(dtype)))
        assert radius == pytest.approx(1, abs=100 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize(("n", "scale"), [(12, 2.0), (10, 0.5), (40, 0.5)])
@pytest.mark.slow_on_jax
def test_powers_that_vanish_are_no_zero(n, scale):
    """One eigenvalue in a single Jordan block, whose powers grow at first.

    The growth of a power is no less than the radius, and rounding moves the eigenvalue
    outward as far as inward.
    """
    matrix = (scale * np.eye(n) + 0.6 * np.eye(n, k=1)).astype("float32")
    assert float(spectral_radius(matrix)) >= 0.95 * scale
    normalized, divided = normalize_spectral_radius(matrix)
    assert bool(divided)
    assert np.abs(np.diag(ops.convert_to_numpy(normalized))).max() <= 1 / 0.95


def test_stops_early_where_it_can():
    report = eigenpair_report(with_dominant("pair", 30))
    assert report["squarings"] <= 10
    assert report["products"] == 0


@pytest.mark.parametrize("scale", [1e-30, 1e30, 2.5e38])
@pytest.mark.slow_on_jax
def test_scale(scale):
    matrix = with_dominant("pair", 6).astype("float32") / np.float32(1.5)
    _, expected = radius_and_gradient(matrix)
    matrix = (matrix * np.float32(scale) / max(1, np.abs(matrix).max())).astype(
        "float32"
    )
    radius, found = radius_and_gradient(matrix)
    eps = np.finfo("float32").eps
    largest = np.abs(np.linalg.eigvals(matrix.astype("float64"))).max()
    assert radius == pytest.approx(largest, rel=float(1000 * eps))
    np.testing.assert_allclose(found, expected, atol=1000 * 6 * eps)


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_gives_nan(n, value):
    matrix = np.eye(n)
    matrix[-1, 0] = value
    radius, gradient = radius_and_gradient(matrix)
    assert np.isnan(radius)
    assert np.isnan(gradient).any()
    assert not eigenpair_report(matrix)["gradient_found"]


@pytest.mark.parametrize(
    ("radius", "always", "divides"),
    [(0.9, False, False), (1.1, False, True), (0.9, True, True), (1.1, True, True)],
)
@pytest.mark.slow_on_jax
def test_when_it_divides(radius, always, divides):
    matrix = with_dominant("pair", 5) * radius / 1.5
    upstream = np.random.default_rng(0).normal(size=(5, 5))

    def function(t):
        always_tensor = ops.convert_to_tensor(always)
        return ops.sum(normalize_spectral_radius(t, always_tensor)[0] * upstream)

    normalized, divided = normalize_spectral_radius(matrix, always)
    assert bool(divided) is divides
    (found,) = gradients(function, matrix)
    if divides:
        np.testing.assert_allclose(normalized, matrix / radius, atol=1000 * EPS)
        # What has no scale has no gradient along it.
        assert abs(np.sum(found * matrix)) <= 1e4 * EPS
    else:
        np.testing.assert_array_equal(normalized, matrix)
        np.testing.assert_array_equal(found, upstream)


@pytest.mark.parametrize("function", [spectral_radius, dominant_eigenpair])
@pytest.mark.parametrize("shape", [(2, 3), (3,), (0, 0), (2, 2, 2)])
def test_must_be_square(function, shape):
    with pytest.raises(ValueError, match=r"`matrix` must be square. Received: matrix"):
        function(np.ones(shape))
