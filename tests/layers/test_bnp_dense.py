from functools import partial

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import BNPDense
from tests.gradients import gradients, weight_gradients

pytestmark = [
    pytest.mark.backends,
    pytest.mark.filterwarnings("ignore:`shuffle=True` was passed"),
]

EPS32, EPS64 = np.finfo("float32").eps, np.finfo("float64").eps
XLA = [True] if keras.backend.backend() == "jax" else [False, True]


def built(units=3, shape=(8, 4), **kwargs):
    layer = BNPDense(units, **kwargs)
    layer.build(shape)
    return layer


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
    random = np.random.default_rng(0)
    layer = built(3, shape, epsilon=epsilon, activation=activation, dtype="float64")
    plain = keras.layers.Dense(3, activation=activation, dtype="float64")
    plain.build(shape)
    kernel, bias = random.normal(size=(shape[-1], 3)), random.normal(size=3)
    x = 2 + 3 * random.normal(size=shape)
    upstream = random.normal(size=(*shape[:-1], 3))
    found = []
    for each in (layer, plain):
        each.set_weights([kernel, bias])
        found.append(weight_gradients(each, lambda y: ops.sum(y * upstream), x))
    (value, ours), (expected, theirs) = found
    assert value == pytest.approx(expected, rel=100 * EPS64)
    expected = preconditioned(x, theirs["bias"], theirs["kernel"], epsilon)
    # Sums of at most 13 terms of at most 30, over a variance of at least epsilon.
    atol = 1000 * EPS64 * max(1, 10 / epsilon)
    for name, gradient in zip(("bias", "kernel"), expected, strict=True):
        np.testing.assert_allclose(ours[name], gradient, 100 * EPS64, atol)

    # The inputs have the ordinary gradient.
    def loss(x, layer):
        return ops.sum(layer(ops.convert_to_tensor(x)) * upstream)

    both = (gradients(partial(loss, layer=each), x)[0] for each in (layer, plain))
    np.testing.assert_allclose(*both, atol=100 * EPS64)


@pytest.mark.parametrize("jit_compile", XLA)
def test_a_step_of_sgd_is_that_of_the_dissertation(jit_compile):
    """Equation 3.27, for two layers, by `fit`."""
    random = np.random.default_rng(0)
    x = random.normal(size=(6, 4)).astype("float32") * [1, 2, 3, 4] + 1
    y = random.normal(size=(6, 2)).astype("float32")
    model = keras.Sequential(
        [keras.Input((4,)), BNPDense(3, activation="tanh"), BNPDense(2, 0.1)]
    )
    model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=jit_compile)
    w1, b1, w2, b2 = (np.asarray(w, "float64") for w in model.get_weights())
    model.fit(x, y, batch_size=6, verbose=0)

    h = np.tanh(x @ w1 + b1)
    g2 = 2 * (h @ w2 + b2 - y) / y.size
    g1 = g2 @ w2.T * (1 - h**2)
    db1, dw1 = preconditioned(x, g1.sum(axis=0), x.T @ g1, 0.5)
    db2, dw2 = preconditioned(h, g2.sum(axis=0), h.T @ g2, 0.1)
    expected = [w1 - 0.1 * dw1, b1 - 0.1 * db1, w2 - 0.1 * dw2, b2 - 0.1 * db2]
    for found, value in zip(model.get_weights(), expected, strict=True):
        np.testing.assert_allclose(found, value, atol=100 * EPS32)


@pytest.mark.parametrize("policy", ["bfloat16", "mixed_float16"])
def test_low_precision(policy):
    random = np.random.default_rng(0)
    # In float16 the squares would overflow.
    x = (500 + 100 * random.normal(size=(16, 4))).astype("float32")
    layer = built(3, (16, 4), dtype=policy)
    exact = built(3, (16, 4))
    exact.set_weights([np.asarray(w, "float32") for w in layer.get_weights()])
    compute = policy.removeprefix("mixed_")
    outputs = layer(x)
    assert keras.backend.standardize_dtype(outputs.dtype) == compute

    def loss(y):
        return ops.sum(ops.cast(y, "float32") * 0.01)

    rounded = ops.convert_to_numpy(ops.cast(ops.cast(x, compute), "float32"))
    _, found = weight_gradients(layer, loss, x)
    _, expected = weight_gradients(exact, loss, rounded)
    eps = 2.0 ** (-7 if compute == "bfloat16" else -10)
    for name, gradient in found.items():
        # The deviations are of order 100, the kernel's gradient is the mean of 16 of
        # them over 100^2; the bias's takes 500 times that from 0.16.
        atol = {"kernel": 1e-4, "bias": 0.2}[name] * 16 * eps
        gradient = ops.convert_to_numpy(ops.cast(gradient, "float32"))
        np.testing.assert_allclose(gradient, expected[name], atol=atol, err_msg=name)
