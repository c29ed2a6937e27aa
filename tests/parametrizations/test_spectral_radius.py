"""The radius, its eigenvectors and gradient, against those of LAPACK in float64."""

import functools

import numpy as np
import pytest
from keras import ops
from scipy.linalg import block_diag

from keras_ortho.parametrizations import spectral_radius
from keras_ortho.parametrizations.spectral_radius import (
    eigenpair_report,
    normalize_spectral_radius,
)
from tests.gradients import gradients, traced, value_and_gradient

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps
EPS32 = float(np.finfo("float32").eps)
DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64"])
# Traced once for each shape.
radius = traced(spectral_radius)
_radius_and_gradient = traced(functools.partial(value_and_gradient, spectral_radius))


def radius_and_gradient(matrix):
    radius, gradient = _radius_and_gradient(ops.convert_to_tensor(matrix))
    return float(radius), ops.convert_to_numpy(gradient)


def by_definition(matrix):
    """The radius and `(alpha Re S + beta Im S) / rho`, from all eigenvectors."""
    values, right = np.linalg.eig(matrix.astype("float64"))
    which = np.argmax(np.abs(values))
    # The rows of the inverse are left eigenvectors with v* u = 1.
    s = np.outer(np.linalg.inv(right)[which], right[:, which])
    radius = np.abs(values[which])
    return radius, (np.conj(values[which]) * s).real / radius


def rotation(angle, radius=1.0):
    c, s = np.cos(angle), np.sin(angle)
    return radius * np.array([[c, -s], [s, c]])


def mixed(matrix, random, departure=0.0):
    """A similar matrix, of vectors that are orthogonal but for the departure."""
    n = len(matrix)
    vectors = np.linalg.qr(random.normal(size=(n, n)))[0]
    vectors = vectors @ (np.eye(n) + departure * random.normal(size=(n, n)) / n**0.5)
    return vectors @ matrix @ np.linalg.inv(vectors)


def with_dominant(kind, n, seed=0):
    """A matrix of no special form whose dominant eigenvalue is real, or a pair."""
    random = np.random.default_rng(seed)
    block = {"positive": 1.5, "negative": -1.5, "pair": rotation(1.0, 1.5)}[kind]
    rest = random.uniform(-1, 1, n - len(np.atleast_2d(block)))
    return mixed(block_diag(block, *rest), random, departure=0.5)


def gaussian(n, random):
    return random.normal(size=(n, n)) / n**0.5


def symmetric(n, random):
    return gaussian(n, random) + gaussian(n, random).T


def trained_a_little(n, random):
    """As the short-term matrix starts, and small steps away from it."""
    angles, radii = random.uniform(0, np.pi / 2, n), random.uniform(-1, 1, n)
    start = block_diag(*map(rotation, angles[: n // 2], radii), *radii[n - n % 2 :])
    return start + 1e-3 * random.normal(size=(n, n))


def near_tie(n, random, dominant, gap, departure):
    values = {
        "real": (1, rotation(1.1, 1 - gap)),
        "pair": (rotation(0.7), gap - 1),
        "two pairs": (rotation(0.7), rotation(1.1, 1 - gap)),
        "real pair": (-1, gap - 1),
        "both signs": (1, gap - 1, 1 - gap),
    }[dominant]
    rest = random.uniform(-0.9, 0.9, n - len(block_diag(*values)))
    return mixed(block_diag(*values, *rest), random, departure)


@DTYPES
@pytest.mark.parametrize("n", [1, 94, pytest.param(720, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", [gaussian, symmetric, trained_a_little])
def test_radius(kind, n, dtype):
    eps = float(np.finfo(dtype).eps)
    matrix = kind(n, np.random.default_rng(n)).astype(dtype)
    found = float(radius(matrix))
    expected = np.abs(np.linalg.eigvals(matrix.astype("float64"))).max()
    assert found == pytest.approx(expected, rel=100 * n * eps)


@DTYPES
@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize(
    "dominant", ["real", "pair", "two pairs", "real pair", "both signs"]
)
def test_radius_of_a_near_tie(dominant, gap, dtype):
    n, eps = 20, float(np.finfo(dtype).eps)
    # Squaring hides a sign: there the residual grows as the gap shrinks.
    bound = min(1.0, 50 * n * eps + (dominant == "both signs") * n * eps / gap)
    for seed in range(4):
        random = np.random.default_rng(seed)
        for departure in (0.0, 0.3):
            matrix = near_tie(n, random, dominant, gap, departure).astype(dtype)
            # Condition numbers of the eigenvalues are moderate.
            assert float(radius(matrix)) == pytest.approx(1, rel=bound + gap)


@pytest.mark.parametrize(("n", "epsilon"), [(2, 0.0), (3, 0.3), (8, 0.0), (5, 0.3)])
@pytest.mark.parametrize("kind", ["positive", "negative", "pair"])
def test_gradient_of_the_normalized_matrix(kind, n, epsilon):
    matrix = with_dominant(kind, n, seed=1)
    upstream = np.random.default_rng(2).normal(size=(n, n))
    (found,) = gradients(
        lambda t: ops.sum(normalize_spectral_radius(t, True, epsilon)[0] * upstream),
        matrix,
    )
    # The formula of the paper, its inner factor 1 / rho rather than 1 / (rho + eps).
    rho, gradient = by_definition(matrix)
    inner = np.sum(upstream * matrix) / (rho + epsilon) * gradient
    np.testing.assert_allclose(
        found, (upstream - inner) / (rho + epsilon), atol=1000 * n * EPS
    )


@DTYPES
@pytest.mark.parametrize("name", ["enrnn_m10", "enrnn_m11"])
@pytest.mark.slow_on_jax
def test_parity_with_the_authors_code(data_dir, name, dtype):
    data = np.load(data_dir / "parity" / f"{name}.npz")
    n = len(data["T"])
    matrix, upstream = data["T"].astype(dtype), data["grad_W"].astype(dtype)
    real, imaginary = data["dominant_eigenvalue"]
    found = float(spectral_radius(matrix))
    assert found == pytest.approx(np.hypot(real, imaginary), abs=100 * n * EPS32)
    normalized, divided = normalize_spectral_radius(matrix)
    assert bool(divided)
    np.testing.assert_allclose(normalized, data["W_S"], atol=10 * n * EPS32)
    (found,) = gradients(
        lambda t: ops.sum(normalize_spectral_radius(t)[0] * upstream), matrix
    )
    scale = np.abs(data["grad_T"]).max()
    np.testing.assert_allclose(found, data["grad_T"], atol=10 * n * EPS32 * scale)


def far_from_normal(n, departure, random):
    """Pairs of eigenvalues spread over the disk, and much above the diagonal."""
    pairs = [
        rotation(random.uniform(0, np.pi), random.uniform() ** 0.5)
        for _ in range(n // 2)
    ]
    above = departure * np.triu(random.normal(size=(n, n)), 2) / n**0.5
    for i in range(0, n, 2):
        above[i, i + 1] = above[i + 1, i] = 0
    return mixed(block_diag(*pairs) + above, random)


@pytest.mark.parametrize(
    ("n", "departure", "dtype"),
    [
        *[(20, 2.5, "float32"), (20, 3.5, "float32"), (94, 1.5, "float32")],
        *[(20, 2.5, "float64"), (20, 3.5, "float64"), (94, 2.5, "float64")],
    ],
)
def test_far_from_normal(n, departure, dtype):
    """Whose powers grow at first, so that rounding spoils them."""
    matrix = far_from_normal(n, departure, np.random.default_rng(n + 2)).astype(dtype)
    radius, gradient = radius_and_gradient(matrix)
    expected, exact = by_definition(matrix)
    assert radius == pytest.approx(expected, rel=2e-5 if dtype == "float32" else 1e-12)
    # The residual, at most 1e-5 and 6e-12, times the condition number of the
    # eigenvalue, 36 and 282, over the gap to the next one, 0.3 and 0.14 of about 1.
    error = np.linalg.norm(gradient - exact) / np.linalg.norm(exact)
    assert error <= (2e-3 if dtype == "float32" else 1e-9)


ORTHOGONAL = np.linalg.qr(np.random.default_rng(0).normal(size=(20, 20)))[0]
TWO_PAIRS = block_diag(rotation(0.4), rotation(1.3), 0.5, -0.3, 0.2, 0.1)
DEFECTIVE = block_diag([[1.0, 1.0], [0.0, 1.0]], 0.5, -0.5, 0.1)


@pytest.mark.parametrize(
    ("matrix", "expected", "known"),
    [
        (np.array([[-2.0]]), 2, True),
        (np.zeros((3, 3)), 0, True),
        # That of the eigenvalue 2, with u = (1, 2) and v = (2, 1).
        (np.array([[0.0, 1.0], [4.0, 0.0]]), 2, True),
        (-3 * np.eye(8), 3, True),
        (mixed(DEFECTIVE, np.random.default_rng(0)), 1, None),
        # More than two tie: the mean over all.
        (np.diag([1.0, -1.0, -1.0]), 1, False),
        (np.roll(np.eye(8), 1, axis=0), 1, False),
        (mixed(TWO_PAIRS, np.random.default_rng(1), 0.3), 1, False),
        (ORTHOGONAL, 1, False),
    ],
)
def test_ties_and_other_matrices_without_a_gradient(matrix, expected, known):
    radius, gradient = radius_and_gradient(matrix)
    # Rounding moves a defective eigenvalue by its root.
    atol = 10 * EPS**0.5 if known is None else 1e4 * EPS
    assert radius == pytest.approx(expected, abs=atol)
    # As the radius is homogeneous, so is whatever stands for its gradient.
    size = max(1.0, np.linalg.norm(gradient) * np.linalg.norm(matrix))
    assert np.sum(gradient * matrix) == pytest.approx(radius, abs=1e5 * EPS * size)
    if known is not None:
        # A zero matrix has no subspace.
        assert eigenpair_report(matrix)["gradient_found"] is (known and expected > 0)
    if known is False:
        scaled = matrix / np.sum(matrix * matrix)
        np.testing.assert_allclose(gradient, scaled, atol=10 * EPS)


@pytest.mark.parametrize(("n", "scale"), [(12, 2.0), (40, 0.5)])
@pytest.mark.slow_on_jax
def test_powers_that_vanish_are_no_zero(n, scale):
    """The growth of a power is no less than the radius.

    Rounding moves the eigenvalue of a single Jordan block outward as far as inward.
    """
    matrix = (scale * np.eye(n) + 0.6 * np.eye(n, k=1)).astype("float32")
    assert float(spectral_radius(matrix)) >= 0.95 * scale


@pytest.mark.parametrize("scale", [1e-30, 1e30])
@pytest.mark.slow_on_jax
def test_scale(scale):
    matrix = with_dominant("pair", 6).astype("float32")
    _, expected = radius_and_gradient(matrix)
    radius, found = radius_and_gradient((matrix * scale).astype("float32"))
    assert radius == pytest.approx(1.5 * scale, rel=1000 * EPS32)
    np.testing.assert_allclose(found, expected, atol=1000 * 6 * EPS32)
