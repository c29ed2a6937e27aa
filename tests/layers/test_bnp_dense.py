import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import BNPDense
from tests.gradients import gradients, weight_gradients

pytestmark = pytest.mark.backends

EPS64 = np.finfo("float64").eps


def preconditioned(x, bias_gradient, kernel_gradient, epsilon):
    """`P D^2 P^T [db; dW]` with the matrices of the dissertation."""
    x = x.reshape(-1, x.shape[-1])
    m = x.shape[1]
    p = np.eye(m + 1)
    p[0, 1:] = -x.mean(axis=0)
    d = np.diag(np.concatenate([[1], 1 / np.sqrt(x.var(axis=0) + epsilon)]))
    stacked = np.vstack([bias_gradient[None], kernel_gradient])
    result = p @ d @ d @ p.T @ stacked
    return result[0], result[1:]


@pytest.mark.parametrize(
    ("shape", "activation", "epsilon"),
    [((8, 4), None, 0.5), ((1, 3), "relu", 1e-3), ((2, 3, 2, 4), "relu", 0.5)],
)
def test_gradient_is_preconditioned(shape, activation, epsilon):
    random, given = np.random.default_rng(0), {"dtype": "float64"}
    layer = BNPDense(3, epsilon, activation, **given)
    plain = keras.layers.Dense(3, activation, **given)
    kernel, bias = random.normal(size=(shape[-1], 3)), random.normal(size=3)
    x = 2 + 3 * random.normal(size=shape)
    upstream = random.normal(size=(*shape[:-1], 3))

    def found(layer):
        layer.build(shape)
        layer.set_weights([kernel, bias])
        of_inputs = gradients(lambda x: ops.sum(layer(x) * upstream), x)
        return *weight_gradients(layer, lambda y: ops.sum(y * upstream), x), *of_inputs

    value, ours, of_inputs = found(layer)
    expected, theirs, ordinary = found(plain)
    np.testing.assert_allclose(of_inputs, ordinary, atol=100 * EPS64)
    assert value == pytest.approx(expected, rel=100 * EPS64)
    expected = preconditioned(x, theirs["bias"], theirs["kernel"], epsilon)
    # Sums of at most 13 terms of at most 30, over a variance of at least epsilon.
    atol = 1000 * EPS64 * max(1, 10 / epsilon)
    for name, gradient in zip(("bias", "kernel"), expected, strict=True):
        np.testing.assert_allclose(ours[name], gradient, 100 * EPS64, atol)


def test_low_precision():
    """In float16 the squares would overflow."""
    x = 500 + 100 * np.random.default_rng(0).normal(size=(16, 4))
    x = x.astype("float16").astype("float32")
    layer, exact = BNPDense(3, dtype="mixed_float16"), BNPDense(3)
    assert keras.backend.standardize_dtype(layer(x).dtype) == "float16"
    exact(x)
    exact.set_weights(layer.get_weights())

    def loss(y):
        return ops.sum(ops.cast(y, "float32") * 0.01)

    (_, found), (_, expected) = (weight_gradients(e, loss, x) for e in (layer, exact))
    # The deviations are of order 100, the kernel's gradient is the mean of 16 of them
    # over 100^2; the bias's takes 500 times that from 0.16.
    for name, size in {"kernel": 1e-4, "bias": 0.2}.items():
        atol = size * 16 * 2.0**-10
        np.testing.assert_allclose(found[name], expected[name], atol=atol)
