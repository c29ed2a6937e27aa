import functools
import itertools

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho.parametrizations import (
    dominant_eigenpair,
    eigenpair_report,
    normalize_spectral_radius,
    spectral_radius,
)
from keras_ortho.parametrizations.block_iteration import FIRST_STEPS, IDLE_FROM
from keras_ortho.parametrizations.dominant import MOST_SQUARINGS, dominant_subspace
from keras_ortho.parametrizations.small_eigenvalues import eigenvalues
from tests import reference
from tests.gradients import gradients, traced, value_and_gradient

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps
TENSORFLOW = keras.backend.backend() == "tensorflow"


eigenpair = traced(dominant_eigenpair)


def _radius_and_gradient(matrix):
    return value_and_gradient(spectral_radius, matrix)


_traced_radius_and_gradient = traced(_radius_and_gradient)


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


def near_tie(n, random, dominant="real", second="pair", gap=1e-3, departure=0.3):
    def block(kind, radius):
        if kind == "real":
            return random.choice([-radius, radius])
        return rotation(random.uniform(0.3, 2.8), radius)

    blocks = [block(dominant, 1), block(second, 1 - gap)]
    taken = sum(len(np.atleast_2d(b)) for b in blocks)
    rest = random.uniform(-0.9, 0.9, n - taken)
    return mixed(block_diagonal(*blocks, *rest), random, departure)


# Some of the random matrices of a kind, and the others.
FEW, MORE = range(1), pytest.param(range(1, 10), marks=pytest.mark.slow, id="more")


def residual(matrix):
    """The larger of ||T u - lambda u|| and ||v* T - lambda v*||, over ||T||_2."""
    value, u, v = (ops.convert_to_numpy(x).astype("float64") for x in eigenpair(matrix))
    value, u, v = value[0] + 1j * value[1], u[0] + 1j * u[1], v[0] + 1j * v[1]
    # To rounding in the dtype of the matrix.
    eps = 10 * float(np.finfo(matrix.dtype).eps)
    assert np.linalg.norm(u) == pytest.approx(1, abs=eps)
    assert np.linalg.norm(v) == pytest.approx(1, abs=eps)
    matrix = matrix.astype("float64")
    right = np.linalg.norm(matrix @ u - value * u)
    left = np.linalg.norm(v.conj() @ matrix - value * v.conj())
    return max(right, left) / np.linalg.norm(matrix, 2), value


@pytest.mark.parametrize("seeds", [FEW, MORE])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "n",
    [
        1,
        pytest.param(2, marks=pytest.mark.slow),
        pytest.param(3, marks=pytest.mark.slow),
        pytest.param(10, marks=pytest.mark.slow),
        94,
    ],
)
@pytest.mark.parametrize(
    "kind",
    [gaussian, symmetric, trained_a_little, not_normal],
    ids=lambda k: k.__name__,
)
def test_eigenpair(kind, n, dtype, seeds):
    eps = np.finfo(dtype).eps
    for seed in seeds:
        matrix = kind(n, np.random.default_rng(seed)).astype(dtype)
        found, value = residual(matrix)
        # Each squaring is a backward error of n eps at most; in most matrices the
        # first of them counts, and some are close to a tie.
        assert found <= 10 * n * eps, seed
        eigenvalues = np.linalg.eigvals(matrix.astype("float64"))
        assert abs(value) == pytest.approx(
            np.abs(eigenvalues).max(), rel=float(100 * n * eps)
        )
        assert value.imag >= 0


@pytest.mark.parametrize("seeds", [FEW, MORE])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("second", ["real", "pair"])
@pytest.mark.parametrize("dominant", ["real", "pair"])
@pytest.mark.parametrize("departure", [0.0, 0.3])
@pytest.mark.slow_on_jax
def test_eigenpair_of_a_near_tie(dominant, second, gap, departure, dtype, seeds):
    n, eps = 20, np.finfo(dtype).eps
    for seed in seeds:
        random = np.random.default_rng(seed)
        matrix = near_tie(n, random, dominant, second, gap, departure).astype(dtype)
        found, value = residual(matrix)
        # The squares of a pair may be closer to each other than the eigenvalues are.
        assert found <= 50 * n * eps, seed
        # Condition numbers of the eigenvalues are moderate.
        assert abs(value) == pytest.approx(1, rel=float(50 * n * eps))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("gap", [1e-2, 1e-3, 1e-4])
def test_eigenpair_of_three_that_nearly_tie_with_two_signs(gap, dtype):
    """Squaring hides a sign: here the residual grows as the gap shrinks."""
    n, eps = 20, np.finfo(dtype).eps
    for seed in range(8):
        random = np.random.default_rng(seed)
        rest = random.uniform(-0.9, 0.9, n - 3)
        matrix = mixed(np.diag([1, gap - 1, 1 - gap, *rest]), random).astype(dtype)
        found, value = residual(matrix)
        assert found <= n * eps / gap
        assert abs(value) == pytest.approx(1, rel=float(n * eps / gap))


@pytest.mark.slow
@pytest.mark.parametrize("n", [320, 720])
def test_eigenpair_of_large_matrices(n):
    for kind in (gaussian, trained_a_little):
        matrix = kind(n, np.random.default_rng(n)).astype("float32")
        found, _ = residual(matrix)
        assert found <= n * np.finfo("float32").eps


def gradient_by_eig(matrix):
    """`(alpha Re S + beta Im S) / rho` from all eigenvectors."""
    values, right = np.linalg.eig(matrix.astype("float64"))
    which = np.argmax(np.abs(values))
    # The rows of the inverse are left eigenvectors with v* u = 1.
    s = np.outer(np.linalg.inv(right)[which], right[:, which])
    value = values[which]
    return (value.real * s.real + value.imag * s.imag) / np.abs(value)


def with_dominant(kind, n, seed=0):
    """A matrix of no special form whose dominant eigenvalue is real, or a pair."""
    random = np.random.default_rng(seed)
    block = {"positive": 1.5, "negative": -1.5, "pair": rotation(1.0, 1.5)}[kind]
    rest = random.uniform(-1, 1, n - len(np.atleast_2d(block)))
    return mixed(block_diagonal(block, *rest), random, departure=0.5)


KINDS = ["positive", "negative", "pair"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 3, 8, pytest.param(60, marks=pytest.mark.slow)])
def test_gradient_of_the_radius(kind, n):
    matrix = with_dominant(kind, n)
    _, found = radius_and_gradient(matrix)
    expected = gradient_by_eig(matrix)
    # The condition of the eigenvectors is that of `mixed` and the gap of 1.5 to 1.
    np.testing.assert_allclose(found, expected, atol=1000 * n * EPS)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("kind", KINDS)
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
    inner = np.sum(upstream * normalized) * gradient_by_eig(matrix)
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("negative", "float64"),
        pytest.param("pair", "float32", marks=pytest.mark.slow),
    ],
)
def test_compiled(kind, dtype):
    matrix = with_dominant(kind, 12).astype(dtype)
    upstream = np.random.default_rng(0).normal(size=(12, 12)).astype(dtype)

    def function(t):
        return ops.sum(normalize_spectral_radius(t, True, 0.1)[0] * upstream)

    kwargs = {"jit_compile": True} if TENSORFLOW else {}
    compiled = traced(functools.partial(value_and_gradient, function), **kwargs)
    value, found = compiled(ops.convert_to_tensor(matrix))
    (expected,) = gradients(function, matrix)
    atol = 1000 * 12 * np.finfo(dtype).eps
    assert keras.backend.standardize_dtype(found.dtype) == dtype
    np.testing.assert_allclose(found, expected, atol=atol)
    np.testing.assert_allclose(
        value, function(ops.convert_to_tensor(matrix)), atol=atol
    )


def radius_and_gradient(matrix):
    """Both, of a program that is traced once for each shape."""
    found = _traced_radius_and_gradient(ops.convert_to_tensor(matrix))
    radius, gradient = float(found[0]), ops.convert_to_numpy(found[1])
    return radius, gradient


def homogeneous_radius(matrix):
    radius, gradient = radius_and_gradient(matrix)
    assert np.isfinite(gradient).all()
    # As the radius is homogeneous, so is whatever stands for its gradient.
    size = max(1.0, np.linalg.norm(gradient) * np.linalg.norm(matrix))
    assert np.sum(gradient * matrix) == pytest.approx(
        radius, abs=1e4 * len(matrix) * EPS * size
    )
    return radius, gradient


def test_order_one():
    for value in (2.0, -2.0):
        radius, gradient = homogeneous_radius(np.array([[value]]))
        assert radius == 2.0
        np.testing.assert_array_equal(gradient, [[np.sign(value)]])


@pytest.mark.parametrize("n", [1, 2, 8])
def test_zeros(n):
    radius, gradient = homogeneous_radius(np.zeros((n, n)))
    assert radius == 0
    np.testing.assert_array_equal(gradient, 0)
    for epsilon in (0.0, 0.1):
        normalized, divided = normalize_spectral_radius(np.zeros((n, n)), True, epsilon)
        assert bool(divided)
        np.testing.assert_array_equal(normalized, 0)


def test_nilpotent():
    matrix = np.diag(np.ones(4), 1)
    assert float(spectral_radius(matrix)) == 0
    np.testing.assert_array_equal(normalize_spectral_radius(matrix)[0], matrix)
    (gradient,) = gradients(lambda t: ops.sum(normalize_spectral_radius(t)[0]), matrix)
    np.testing.assert_array_equal(gradient, 1)


@pytest.mark.slow_on_jax
def test_opposite_signs():
    radius, gradient = homogeneous_radius(np.array([[0.0, 1.0], [4.0, 0.0]]))
    assert radius == pytest.approx(2, abs=10 * EPS)
    # That of the eigenvalue 2, with u = (1, 2) and v = (2, 1).
    np.testing.assert_allclose(gradient, [[0.5, 1], [0.25, 0.5]], atol=10 * EPS)


@pytest.mark.parametrize("n", [2, 8])
def test_equal_eigenvalues(n):
    radius, gradient = homogeneous_radius(-3 * np.eye(n))
    assert radius == pytest.approx(3, abs=10 * EPS)
    # Minus a mean of projectors on eigenvectors.
    assert np.linalg.eigvalsh(-gradient).min() >= -10 * n * EPS


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [2, 8])
def test_defective(n, seed):
    """The eigenvalue 1 twice, with one eigenvector."""
    rest = np.linspace(-0.5, 0.5, n - 2)
    block = block_diagonal(np.array([[1.0, 1.0], [0.0, 1.0]]), *rest)
    matrix = mixed(block, np.random.default_rng(seed))
    radius, gradient = homogeneous_radius(matrix)
    # Rounding of T by sqrt(n) ||T||_2 eps, of about 4 eps, moves such eigenvalues by
    # the root of that.
    assert radius == pytest.approx(1, abs=10 * EPS**0.5)
    # Bounded by the condition number that counts as known.
    assert np.linalg.norm(gradient) <= 2 / (n * EPS)


@pytest.mark.slow
def test_more_ties_than_the_block_holds():
    orthogonal = np.linalg.qr(np.random.default_rng(0).normal(size=(20, 20)))[0]
    radius, gradient = homogeneous_radius(orthogonal)
    assert radius == pytest.approx(1, abs=100 * EPS)
    # The mean over all eigenvalues.
    np.testing.assert_allclose(gradient, orthogonal / 20, atol=10 * EPS)
    report = eigenpair_report(orthogonal)
    assert not report["gradient_found"]
    # Their number of squarings is bounded, and that of steps.
    assert report["squarings"] == MOST_SQUARINGS["float64"]
    assert 0 < report["block_steps"] < FIRST_STEPS * 2**IDLE_FROM * 2


@pytest.mark.parametrize(
    "matrix",
    [
        np.linalg.qr(np.random.default_rng(0).normal(size=(8, 8)))[0],
        np.roll(np.eye(8), 1, axis=0),
        mixed(
            block_diagonal(rotation(0.4), rotation(1.3), 0.5, -0.3, 0.2, 0.1),
            np.random.default_rng(1),
            0.3,
        ),
    ],
    ids=["orthogonal", "permutation", "two pairs"],
)
def test_ties_of_more_than_two(matrix):
    """One of the eigenvalues counts: a subgradient."""
    radius, gradient = homogeneous_radius(matrix)
    n = len(matrix)
    assert radius == pytest.approx(1, abs=1000 * n * EPS)
    values, right = np.linalg.eig(matrix)
    left = np.linalg.inv(right)
    candidates = [
        (np.conj(values[i]) * np.outer(left[i], right[:, i])).real / abs(values[i])
        for i in range(n)
        if abs(values[i]) > 1 - 1e-6
    ]
    errors = [np.abs(gradient - candidate).max() for candidate in candidates]
    # Gaps of 1e-1 and more between the eigenvalues.
    assert min(errors) <= 1e4 * n * EPS
    assert eigenpair_report(matrix)["gradient_found"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "dtype", [pytest.param("float32", marks=pytest.mark.slow), "float64"]
)
def test_exact_ties_of_three(dtype):
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


def by_lapack(matrix):
    """Radius and gradient from geev, in the precision of the matrix."""
    scipy_linalg = pytest.importorskip("scipy.linalg")
    # NumPy computes in float64 whatever the dtype of the matrix.
    values, left, right = scipy_linalg.eig(matrix, left=True, right=True)
    i = np.argmax(np.abs(values))
    value, y, x = values[i], left[:, i].conj(), right[:, i]
    gradient = (np.conj(value) / np.abs(value) * np.outer(y, x) / (y @ x)).real
    return np.abs(value), gradient


def true_pair(matrix):
    """Radius and gradient in long double: Newton's method from those of LAPACK."""
    values, right = np.linalg.eig(matrix.astype("float64"))
    i = np.argmax(np.abs(values))
    exact = matrix.astype("longdouble")
    n, start = len(matrix), values[i]

    def polished(t, x):
        value, x = np.clongdouble(start), (x / np.linalg.norm(x)).astype("clongdouble")
        system = np.zeros((n + 1, n + 1), complex)
        system[:n, :n] = t.astype("float64") - start * np.eye(n)
        system[:n, n], system[n, :n] = -x, x.conj()
        inverse = np.linalg.inv(system)
        for _ in range(6):
            change = inverse @ np.append(value * x - t @ x, 0).astype(complex)
            x, value = x + change[:n], value + change[n]
        return value, x

    value, x = polished(exact, right[:, i])
    _, y = polished(exact.T, np.linalg.inv(right)[i])
    gradient = np.conj(value) / np.abs(value) * np.outer(y, x) / (y @ x)
    return float(np.abs(value)), gradient.real.astype("float64")


def assert_as_good_as_lapack(matrix):
    """Within ten times its error, where that is not zero by luck."""
    n, eps = len(matrix), float(np.finfo(matrix.dtype).eps)
    radius, found = radius_and_gradient(matrix)
    of_lapack, gradient_of_lapack = by_lapack(matrix)
    true, gradient = true_pair(matrix)
    # The norm of the gradient is the condition number: rounding of ||T|| eps moves the
    # eigenvalue by that much, times what backward errors of LAPACK are at least.
    scale = np.linalg.norm(gradient)
    luck = np.sqrt(n) * eps * np.linalg.norm(matrix, 2) * scale
    assert abs(radius - true) <= 10 * abs(of_lapack - true) + luck
    by_ours = np.linalg.norm(found - gradient)
    by_theirs = np.linalg.norm(gradient_of_lapack - gradient)
    assert by_ours <= 10 * by_theirs + luck
    return by_ours / scale


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("gap", [1.9e-3, 1e-4, 1e-6])
def test_close_real_pair(gap, dtype):
    random = np.random.default_rng(0)
    values = np.array([1.00095, 1.00095 * (1 - gap), *random.uniform(-0.9, 0.9, 18)])
    matrix = mixed(np.diag(values), random, 0.3).astype(dtype)
    error = assert_as_good_as_lapack(matrix)
    # Vectors are known to the rounding of the matrix over the gap.
    assert error <= 100 * np.finfo(dtype).eps / gap


def far_from_normal(n, departure, random):
    """Pairs of eigenvalues spread over the disk, and much above the diagonal."""
    pairs = [
        rotation(random.uniform(0, np.pi), random.uniform() ** 0.5)
        for _ in range(n // 2)
    ]
    above = departure * np.triu(random.normal(size=(n, n)), 2) / n**0.5
    for i in range(0, n, 2):
        above[i, i + 1] = above[i + 1, i] = 0
    return mixed(block_diagonal(*pairs) + above, random)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("departure", [2.5, 3.5])
@pytest.mark.parametrize("n", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_far_from_normal(n, departure, dtype):
    matrix = far_from_normal(n, departure, np.random.default_rng(n)).astype(dtype)
    assert_as_good_as_lapack(matrix)


@pytest.mark.slowest
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("departure", [0.0, 1.5])
def test_large_matrices_that_are_not_normal(departure, dtype):
    matrix = far_from_normal(720, departure, np.random.default_rng(1)).astype(dtype)
    assert_as_good_as_lapack(matrix)


@pytest.mark.parametrize(
    "matrix",
    [
        np.random.default_rng(0).normal(size=(16, 16)),
        np.roll(np.eye(8), 1, axis=0),
        np.eye(6) + np.diag(np.ones(5), 1),
        -3 * np.eye(5),
        np.zeros((3, 3)),
        np.array([[-2.0]]),
    ],
    ids=["gaussian", "permutation", "jordan", "identity", "zeros", "order one"],
)
def test_small_eigenvalues(matrix):
    found = ops.convert_to_numpy(eigenvalues(ops.convert_to_tensor(matrix)))
    found, expected = found[0] + 1j * found[1], np.linalg.eigvals(matrix)
    for value in expected:
        nearest = np.abs(found - value).argmin()
        assert abs(found[nearest] - value) <= 1000 * len(matrix) * EPS
        found = np.delete(found, nearest)


@pytest.mark.slow_on_jax
def test_stops_early_where_it_can():
    assert int(dominant_subspace(with_dominant("pair", 30)).squarings) <= 10


@pytest.mark.parametrize("scale", [1e-30, 1e30])
@pytest.mark.slow_on_jax
def test_scale(scale):
    matrix = with_dominant("pair", 6).astype("float32")
    _, expected = radius_and_gradient(matrix)
    matrix = (matrix * scale).astype("float32")
    radius, found = radius_and_gradient(matrix)
    eps = np.finfo("float32").eps
    assert radius == pytest.approx(1.5 * scale, rel=float(1000 * eps))
    np.testing.assert_allclose(found, expected, atol=1000 * 6 * eps)


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
