"""Activations with their derivatives, against NumPy and central differences."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho.activations import LeakyReLU, oplu
from keras_ortho.recurrence.pointwise import find
from tests import reference
from tests.gradients import gradients

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps

ACTIVATIONS = {
    "modrelu": (find("modrelu", False), reference.modrelu),
    "complex modrelu": (
        find("modrelu", True),
        reference.complex_reals(reference.complex_modrelu),
    ),
    "smoothed modrelu": (
        find("smoothed_modrelu", True),
        reference.complex_reals(reference.smoothed_modrelu),
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
    "oplu": (find(oplu, False), lambda z, b: reference.oplu(z + b)),
    "tanh": (find(keras.activations.tanh, False), lambda z, b: np.tanh(z + b)),
    "sigmoid": (
        find(keras.activations.sigmoid, False),
        lambda z, b: 1 / (1 + np.exp(-z - b)),
    ),
}

COMPLEX = ("complex modrelu", "smoothed modrelu")


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_value_and_gradient(name):
    pointwise, function = ACTIVATIONS[name]
    random = np.random.default_rng(0)
    z, upstream = random.normal(size=(2, 3, 2, 6))
    b = random.normal(size=3 if name in COMPLEX else 6)
    inputs = ops.convert_to_tensor(z if pointwise.own_bias else z + b)
    bias = ops.convert_to_tensor(b)
    kept = pointwise.apply(inputs, bias)
    np.testing.assert_allclose(kept[0], function(z, b), atol=20 * EPS)
    found = [(x.shape[-1], keras.backend.standardize_dtype(x.dtype)) for x in kept]
    assert found == list(pointwise.kept(6, "float64"))

    gradient, terms = pointwise.pull(kept, bias, ops.convert_to_tensor(upstream))
    # The error of central differences, and of the rounding in them.
    step = 1e-5
    atol = 100 * (step**2 + EPS / step) + 20 * EPS
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
    bias = ops.ones((2,) if name in COMPLEX else (4,))
    kept = pointwise.apply(zeros, bias)
    for gradient in pointwise.pull(kept, bias, ones):
        assert np.isfinite(ops.convert_to_numpy(gradient)).all()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("form", ["modrelu", "smoothed_modrelu"])
def test_complex_modrelu_has_the_gradient_of_automatic_differentiation(form, dtype):
    """Also where the modulus is zero, or next to it."""
    pointwise = find(form, True)
    random = np.random.default_rng(0)
    units = 6
    z, upstream = random.normal(size=(2, 8, 2 * units))
    z *= np.array([1, 1e-2, 1e-4, 1e-6, 1e-12, 1e-20, 0, 1])[:, None]
    b = np.array([0.5, 0.1, 0.0, -1e-5, -0.1, -1.0])
    z, b, upstream = (x.astype(dtype) for x in (z, b, upstream))
    expected = gradients(
        lambda z, b: ops.sum(ops.cast(pointwise.apply(z, b)[0], "float64") * upstream),
        z,
        b,
    )
    z, b, upstream = map(ops.convert_to_tensor, (z, b, upstream))
    to_z, terms = pointwise.pull(pointwise.apply(z, b), b, upstream)
    # A few roundings of a sum whose terms are as large as the largest entry of a row.
    eps = np.finfo(dtype).eps
    largest = np.abs(expected[0]).max(axis=1, keepdims=True).astype("float64")
    assert np.isfinite(largest).all()
    difference = np.abs(np.asarray(to_z, "float64") - expected[0])
    assert (difference <= 40 * eps * largest).all()
    np.testing.assert_allclose(
        np.sum(np.asarray(terms, "float64"), axis=0), expected[1], atol=40 * eps
    )


@pytest.mark.parametrize("n", [4, 5])
def test_the_derivative_of_oplu_is_a_permutation(n):
    """Also of pairs whose values are equal."""
    pointwise = find(oplu, False)
    z = np.array([[3.0, 1.0, 1.0, 2.0, -1.0], [1.0, 1.0, 1.0, 1.0, 1.0]])[:, :n]
    kept = pointwise.apply(ops.convert_to_tensor(z), None)
    rows = [
        pointwise.pull(kept, None, ops.convert_to_tensor(np.tile(row, (2, 1))))[0]
        for row in np.eye(n)
    ]
    swaps = [0, 3, 2, 1, 4][:n]
    expected = np.stack([np.eye(n)[swaps], np.eye(n)], axis=1)
    np.testing.assert_array_equal(np.stack([np.asarray(r) for r in rows]), expected)


def test_what_is_not_known():
    assert find(keras.activations.gelu, False) is None
    assert find(keras.layers.PReLU(), False) is None

    class Unhashable:
        __hash__ = None

        def __call__(self, x):
            return x

    assert find(Unhashable(), False) is None
