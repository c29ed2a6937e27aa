import numpy as np
import pytest
from keras import ops

from keras_ortho.parametrizations import scaled_cayley_unitary, unitarity_error
from keras_ortho.parametrizations.skew import num_entries
from tests import reference
from tests.gradients import gradients

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps


def free_reals(n, seed=0, scale=1.0):
    random = np.random.default_rng(seed)
    return [
        scale * random.normal(size=num_entries(n)),
        scale * random.normal(size=num_entries(n + 1)),
        random.uniform(0, 2 * np.pi, size=n),
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "scale"), [(2, 10.0), (33, 1.0), (170, 0.1)])
def test_unitary_within_its_bound(n, scale, dtype):
    values = [v.astype(dtype) for v in free_reals(n, scale=scale)]
    norm = np.linalg.norm(reference.skew_hermitian(*values[:2]), 2)
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
    values, vectors = np.linalg.eigh(-1j * reference.skew_hermitian(skew, symmetric))
    values[np.argmin(np.abs(values))] = 0.5
    a = (1j * (vectors * values) @ vectors.conj().T).astype("complex64")
    skew, symmetric = a.real[np.triu_indices(n, 1)], a.imag[np.triu_indices(n)]
    a = reference.skew_hermitian(skew, symmetric)
    kernel = ops.convert_to_numpy(
        scaled_cayley_unitary(skew, symmetric, phases.astype("float32"))
    )
    eps, norm = np.finfo("float32").eps, np.linalg.norm(a, 2)
    # As of the real transform: two steps leave the fourth power of the error.
    assert unitarity_error(kernel) <= 10 * n * eps + min(eps * norm, 0.125) ** 4
    exact = reference.unitary_cayley(skew, symmetric, phases.astype("float32"))
    # The eigenvalue itself moves by what rounding of A is.
    np.testing.assert_allclose(
        kernel, reference.complex_block(exact), atol=n * eps + 10 * eps * norm
    )


@pytest.mark.parametrize(("n", "scale"), [(5, 1e2), (20, 1e4)])
def test_gradient_at_large_entries(n, scale):
    values = free_reals(n, scale=scale)
    upstream = np.random.default_rng(1).normal(size=(2 * n, 2 * n))
    found = gradients(lambda *v: ops.sum(scaled_cayley_unitary(*v) * upstream), *values)
    a, phase = reference.skew_hermitian(*values[:2]), np.exp(1j * values[2])
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
