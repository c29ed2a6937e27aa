import numpy as np
import pytest
from keras import ops

from keras_ortho.parametrizations import restricted_unitary, unitarity_error
from tests.gradients import gradients

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps


def parts(n, seed=0):
    random = np.random.default_rng(seed)
    phases = random.uniform(-np.pi, np.pi, size=(3, n))
    return phases, random.normal(size=(2, 2 * n)), random.permutation(n)


def test_is_the_authors_order_of_operations():
    """Applied to a row: D1, FFT, reflection, permutation, D2, inverse FFT, ..."""
    n = 6
    phases, reflectors, permutation = parts(n)
    random = np.random.default_rng(1)
    start = random.normal(size=(4, n)) + 1j * random.normal(size=(4, n))

    def reflect(z, reflector):
        v = reflector[:n] + 1j * reflector[n:]
        return z - 2 * np.outer(z @ v, v.conj()) / np.sum(np.abs(v) ** 2)

    z = start * np.exp(1j * phases[0])
    z = np.fft.fft(z, norm="ortho")
    z = reflect(z, reflectors[0])[:, permutation] * np.exp(1j * phases[1])
    z = np.fft.ifft(z, norm="ortho")
    z = reflect(z, reflectors[1]) * np.exp(1j * phases[2])
    kernel = np.asarray(restricted_unitary(phases, reflectors, permutation))
    found = np.concatenate([start.real, start.imag], axis=1) @ kernel
    np.testing.assert_allclose(found[:, :n] + 1j * found[:, n:], z, atol=100 * n * EPS)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [2, 33, 256])
def test_unitary(n, dtype):
    phases, reflectors, permutation = parts(n)
    kernel = np.asarray(
        restricted_unitary(phases.astype(dtype), reflectors.astype(dtype), permutation)
    )
    assert kernel.dtype == dtype
    # Seven factors, each unitary to n eps at the most.
    assert unitarity_error(kernel) <= 7 * n * np.finfo(dtype).eps


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_the_length_of_a_reflector_plays_no_part(scale):
    n = 5
    phases, reflectors, permutation = parts(n)
    phases, reflectors = phases.astype("float32"), reflectors.astype("float32")
    long = (scale * reflectors).astype("float32")
    expected = restricted_unitary(phases, reflectors, permutation)
    eps = np.finfo("float32").eps
    found = restricted_unitary(phases, long, permutation)
    np.testing.assert_allclose(found, expected, atol=20 * n * eps)


def test_a_zero_reflector_is_the_identity():
    phases, reflectors, permutation = parts(4)
    reflectors[1] = 0
    kernel = restricted_unitary(phases, reflectors, permutation)
    assert unitarity_error(kernel) <= 28 * EPS
    for gradient in gradients(
        lambda p, r: ops.sum(restricted_unitary(p, r, permutation)), phases, reflectors
    ):
        assert np.isfinite(gradient).all()
