"""Activations with their derivatives, against NumPy and central differences."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho.activations import LeakyReLU
from keras_ortho.recurrence.pointwise import find
from tests import reference

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps

ACTIVATIONS = {
    "modrelu": (find("modrelu", False), reference.modrelu),
    "complex modrelu": (
        find("modrelu", True),
        lambda z, b: reference.as_reals(
            reference.complex_modrelu(reference.as_complex(z), b)
        ),
    ),
    "none": (find(keras.activations.get(None), False), lambda z, b: z + b),
    "relu": (
        find(keras.activations.relu, False),
        lambda z, b: np.maximum(z + b, 0),
    ),
    "leaky relu": (
        find(keras.activations.leaky_relu, False),
        lambda z, b: np.where(z + b > 0, z + b, 0.2 * (z + b)),
    ),
    "leaky relu 0.1": (
        find(LeakyReLU(0.1), False),
        lambda z, b: np.where(z + b > 0, z + b, 0.1 * (z + b)),
    ),
    "tanh": (find(keras.activations.tanh, False), lambda z, b: np.tanh(z + b)),
    "sigmoid": (
        find(keras.activations.sigmoid, False),
        lambda z, b: 1 / (1 + np.exp(-z - b)),
    ),
}


def rounding(name):
    # Keras's tanh and sigmoid give float32 on JAX, whatever they get.
    single = keras.backend.backend() == "jax" and name in ("tanh", "sigmoid")
    return np.finfo("float32").eps if single else EPS


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_value_and_gradient(name):
    pointwise, function = ACTIVATIONS[name]
    random = np.random.default_rng(0)
    z, upstream = random.normal(size=(2, 3, 2, 6))
    b = random.normal(size=3 if name == "complex modrelu" else 6)
    inputs = ops.convert_to_tensor(z if pointwise.own_bias else z + b)
    bias = ops.convert_to_tensor(b)
    outputs = pointwise.value(inputs, bias)
    np.testing.assert_allclose(outputs, function(z, b), atol=20 * rounding(name))

    kept = inputs if pointwise.from_inputs else outputs
    gradient, terms = pointwise.pull(kept, bias, ops.convert_to_tensor(upstream))
    # The error of central differences, and of the rounding in them.
    step = 1e-5
    atol = 100 * (step**2 + EPS / step) + 20 * rounding(name)
    expected = reference.central_differences(
        lambda z: np.sum(upstream * function(z, b)), z, step
    )
    np.testing.assert_allclose(gradient, expected, atol=atol)
    expected = reference.central_differences(
        lambda b: np.sum(upstream * function(z, b)), b, step
    )
    np.testing.assert_allclose(ops.sum(terms, axis=(0, 1)), expected, atol=atol)


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_at_zero_the_gradient_is_finite(name):
    pointwise, _ = ACTIVATIONS[name]
    zeros, ones = ops.zeros((1, 1, 4)), ops.ones((1, 1, 4))
    bias = ops.ones((2,) if name == "complex modrelu" else (4,))
    outputs = pointwise.value(zeros, bias)
    kept = zeros if pointwise.from_inputs else outputs
    for gradient in pointwise.pull(kept, bias, ones):
        assert np.isfinite(ops.convert_to_numpy(gradient)).all()


def test_what_is_not_known():
    assert find(keras.activations.gelu, False) is None
    assert find(keras.layers.PReLU(), False) is None

    class Unhashable:
        __hash__ = None

        def __call__(self, x):
            return x

    assert find(Unhashable(), False) is None
