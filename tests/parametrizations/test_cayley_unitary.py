import numpy as np
import pytest
from keras import ops

from keras_ortho.parametrizations import scaled_cayley_unitary, unitarity_error
from keras_ortho.parametrizations.cayley_unitary import symmetric_matrix
from keras_ortho.parametrizations.skew import num_entries
from tests import reference
from tests.gradients import gradients, second_derivative

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps


def free_reals(n, seed=0, scale=1.0):
    random = np.random.default_rng(seed)
    return [
        scale * random.normal(size=num_entries(n)),
        scale * random.normal(size=num_entries(n + 1)),
        random.uniform(0, 2 * np.pi, size=n),
    ]


def skew_hermitian(skew, symmetric, n):
    imaginary = np.zeros((n, n))
    imaginary[np.triu_indices(n)] = symmetric
    imaginary += np.triu(imaginary, 1).T
    return reference.skew(skew, n) + 1j * imaginary


def by_definition(skew, symmetric, phases):
    n = len(phases)
    a = skew_hermitian(skew, symmetric, n)
    assert np.array_equal(a, -a.conj().T)
    return np.linalg.solve(np.eye(n) + a, np.eye(n) - a) @ np.diag(np.exp(1j * phases))


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 33])
def test_is_its_definition(n):
    values = free_reals(n)
    kernel = scaled_cayley_unitary(*map(ops.convert_to_tensor, values))
    condition = np.hypot(1, np.linalg.norm(skew_hermitian(*values[:2], n), 2))
    np.testing.assert_allclose(
        kernel,
        reference.complex_block(by_definition(*values)),
        atol=10 * n * EPS * condition,
    )


def function_of(which, values, upstream):
    """A scalar function of one of the three variables, in NumPy."""

    def function(point):
        kernel = by_definition(*values[:which], point, *values[which + 1 :])
        return np.sum(reference.complex_block(kernel) * upstream)

    return function


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_gradient(n):
    values = free_reals(n)
    # Any gradient, also one that is not of the form of a block.
    upstream = np.random.default_rng(1).normal(size=(2 * n, 2 * n))
    found = gradients(lambda *v: ops.sum(scaled_cayley_unitary(*v) * upstream), *values)
    for which in range(3):
        expected = reference.central_differences(
            function_of(which, values, upstream), values[which], EPS ** (1 / 3)
        )
        # Central differences in float64 are exact to about eps^(2/3).
        np.testing.assert_allclose(
            found[which], expected, atol=100 * n * EPS ** (2 / 3)
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "scale"), [(2, 10.0), (33, 1.0), (170, 0.1)])
def test_unitary_within_its_bound(n, scale, dtype):
    values = [v.astype(dtype) for v in free_reals(n, scale=scale)]
    norm = np.linalg.norm(skew_hermitian(*values[:2], n), 2)
    kernel = ops.convert_to_numpy(
        scaled_cayley_unitary(*map(ops.convert_to_tensor, values))
    )
    assert kernel.dtype == dtype
    # As for the real transform: the condition number of I + A is at most the root.
    assert unitarity_error(kernel) <= n * np.finfo(dtype).eps * np.hypot(1, norm)


@pytest.mark.parametrize(("n", "scale"), [(5, 1e2), (5, 1e4), (40, 1e2), (5, 1e7)])
def test_large_entries(n, scale):
    """In float32, for `A` with an eigenvalue near 0 beside large ones."""
    skew, symmetric, phases = free_reals(n, scale=scale)
    values, vectors = np.linalg.eigh(-1j * skew_hermitian(skew, symmetric, n))
    values[np.argmin(np.abs(values))] = 0.5
    a = (1j * (vectors * values) @ vectors.conj().T).astype("complex64")
    skew, symmetric = a.real[np.triu_indices(n, 1)], a.imag[np.triu_indices(n)]
    a = skew_hermitian(skew, symmetric, n)
    kernel = ops.convert_to_numpy(
        scaled_cayley_unitary(skew, symmetric, phases.astype("float32"))
    )
    eps, norm = np.finfo("float32").eps, np.linalg.norm(a, 2)
    # As of the real transform: two steps leave the fourth power of the error.
    assert unitarity_error(kernel) <= 10 * n * eps + min(eps * norm, 0.125) ** 4
    exact = by_definition(skew, symmetric, phases.astype("float32"))
    # The eigenvalue itself moves by what rounding of A is.
    np.testing.assert_allclose(
        kernel, reference.complex_block(exact), atol=n * eps + 10 * eps * norm
    )


@pytest.mark.parametrize(("n", "scale"), [(5, 1e2), (20, 1e4)])
def test_gradient_at_large_entries(n, scale):
    values = free_reals(n, scale=scale)
    upstream = np.random.default_rng(1).normal(size=(2 * n, 2 * n))
    found = gradients(lambda *v: ops.sum(scaled_cayley_unitary(*v) * upstream), *values)
    a, phase = skew_hermitian(*values[:2], n), np.exp(1j * values[2])
    inverse = np.linalg.inv(np.eye(n) + a)
    real = upstream[:n, :n] + upstream[n:, n:]
    imaginary = upstream[:n, n:] - upstream[n:, :n]
    # W = (2 X - I) D and dX = -X dA X.
    gradient = (real + 1j * imaginary) * phase.conj()
    change = -2 * inverse @ gradient.conj().T @ inverse
    skew = (change.real.T - change.real)[np.triu_indices(n, 1)]
    places = np.where(np.eye(n), 0.5, 1)[np.triu_indices(n)]
    symmetric = -places * (change.imag + change.imag.T)[np.triu_indices(n)]
    # Relative to the gradient, however small it is, the error is that of the inverse.
    rounding = (n + np.linalg.norm(a, 2)) * EPS
    for value, expected in zip(found, (skew, symmetric), strict=False):
        error = np.linalg.norm(value - expected)
        assert error <= 4 * rounding * np.linalg.norm(expected)


def test_real_entries_and_signs_are_the_orthogonal_transform():
    n, signs = 6, np.array([1.0, -1, 1, 1, -1, -1])
    skew = free_reals(n)[0]
    phases = np.where(signs < 0, np.pi, 0)
    kernel = scaled_cayley_unitary(skew, np.zeros(num_entries(n + 1)), phases)
    expected = reference.complex_block(reference.scaled_cayley(skew, signs))
    np.testing.assert_allclose(kernel, expected, atol=100 * n * EPS)


def test_symmetric_matrix_in_row_order():
    matrix = symmetric_matrix(np.array([1.0, 2, 3, 4, 5, 6]))
    np.testing.assert_array_equal(matrix, [[1, 2, 3], [2, 4, 5], [3, 5, 6]])


def test_second_derivative():
    """Through the gradient that is given by hand, as a penalty on gradients needs."""
    n = 3
    values = free_reals(n)
    upstream = np.random.default_rng(1).normal(size=(2 * n, 2 * n))
    direction = np.random.default_rng(2).normal(size=num_entries(n + 1))
    step = EPS ** (1 / 3)

    def along(symmetric):
        _, found, _ = gradients(
            lambda *v: ops.sum(scaled_cayley_unitary(*v) * upstream),
            values[0],
            symmetric,
            values[2],
        )
        return found

    ahead, behind = (along(values[1] + s * direction) for s in (step, -step))
    expected = (ahead - behind) / (2 * step)

    def function(symmetric):
        kernel = scaled_cayley_unitary(
            ops.convert_to_tensor(values[0]),
            symmetric,
            ops.convert_to_tensor(values[2]),
        )
        return ops.sum(kernel * upstream)

    found = second_derivative(function, values[1], direction)
    np.testing.assert_allclose(found, expected, atol=1000 * n * EPS ** (2 / 3))


def test_shapes_must_agree():
    with pytest.raises(ValueError, match=r"Received: skew.shape=\(3,\), symm.*\(3,\)"):
        scaled_cayley_unitary(np.ones(3), np.ones(3), np.ones(3))
