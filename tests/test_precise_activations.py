"""Activations that Keras does not compute in float64, against NumPy."""

import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import BNPDense, ScoRNNCell, SVDDense
from keras_ortho.activations import precise
from tests.gradients import gradients

pytestmark = pytest.mark.backends

POINTS = np.concatenate([np.linspace(-6, 6, 97), [-20, -1e-3, 1e-8, 1e-3, 20]])


# Those that Keras computes in float32 on one of the backends.
REFERENCES = {
    "gelu": lambda x: 0.5 * x * np.vectorize(math.erfc)(-x * math.sqrt(0.5)),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.2 * x),
    "tanh": np.tanh,
}
MENDED = list(REFERENCES)


@pytest.mark.parametrize("name", MENDED)
def test_float64(name):
    activation = keras.activations.get(name)
    found = precise(activation)(ops.convert_to_tensor(POINTS))
    assert keras.backend.standardize_dtype(found.dtype) == "float64"
    expected = REFERENCES[name](POINTS)
    # A handful of operations, each right to some eps = 2.2e-16 of its value; the values
    # between are of the size of the result or of order one: 45 eps.
    tolerance = 1e-14 * np.maximum(np.abs(expected), 1)
    assert (np.abs(ops.convert_to_numpy(found) - expected) <= tolerance).all()


@pytest.mark.parametrize("name", MENDED)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_the_dtype_stays(name, dtype):
    inputs = ops.cast(POINTS, dtype)
    activation = keras.activations.get(name)
    found, expected = precise(activation)(inputs), activation(inputs)
    assert keras.backend.standardize_dtype(found.dtype) == dtype
    # A few roundings of either, the inputs at most 20.
    eps = {"bfloat16": 2**-7, "float16": 2**-10, "float32": 2**-23}[dtype]
    np.testing.assert_allclose(
        ops.convert_to_numpy(ops.cast(found, "float64")),
        ops.convert_to_numpy(ops.cast(expected, "float64")),
        atol=4 * 20 * eps,
    )


@pytest.mark.parametrize("name", MENDED)
def test_gradient(name):
    inputs = POINTS[np.abs(POINTS) > 1e-2]  # Away from leaky ReLU's kink.
    activation = precise(keras.activations.get(name))
    (found,) = gradients(lambda x: ops.sum(activation(x)), inputs)
    step = 1e-5
    ahead, behind = (REFERENCES[name](inputs + s) for s in (step, -step))
    # Of the third derivative, at most 3, and of the rounding of values up to 20.
    atol = step**2 + 40 * np.finfo("float64").eps / step
    np.testing.assert_allclose(found, (ahead - behind) / (2 * step), atol=atol)


def test_what_is_not_kerass_stays():
    def activation(x):
        return x

    assert precise(activation) is activation

    class Unhashable:
        __hash__ = None

    unhashable = Unhashable()
    assert precise(unhashable) is unhashable


@pytest.mark.parametrize("name", MENDED)
def test_layers_compute_in_float64(name):
    """A layer is one without activation, followed by it; a step here has one state."""
    dense = {"kernel_initializer": "glorot_uniform"}
    for cls, arguments in ((BNPDense, dense), (SVDDense, {}), (ScoRNNCell, dense)):
        for activation in (name, keras.activations.get(name)):
            linear, layer = (
                cls(3, activation=each, dtype="float64", **arguments)
                for each in ("linear", activation)
            )
            x = np.random.default_rng(0).normal(size=(5, 4))
            state = ([np.zeros((5, 3))],) if cls is ScoRNNCell else ()
            for each in (layer, linear):
                each.build(x.shape)
            linear.set_weights(layer.get_weights())
            found, values = (call(x, *state) for call in (layer, linear))
            if state:
                found, values = found[0], values[0]
            expected = REFERENCES[name](ops.convert_to_numpy(values))
            np.testing.assert_allclose(found, expected, atol=1e-14)
            assert layer.get_config()["activation"] == name


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float32", 1e-4), ("float16", 1e-2), ("bfloat16", 5e-2)]
)
def test_gelu_far_below_zero(dtype, tolerance):
    """Where the sum of 1 and the error function would have lost all digits.

    At -3 the complementary error function changes by ten times the share by which its
    argument does, 3 / sqrt(2): that is 2e-3 where it is rounded to bfloat16, 2e-4 in
    float16. At -5 it is by 26 times 6e-8 in float32.
    """
    points = ops.cast(
        np.linspace(-5, -4.5, 20) if dtype == "float32" else [-3.0, -2.5], dtype
    )
    found = precise(keras.activations.gelu)(points)
    assert keras.backend.standardize_dtype(found.dtype) == dtype
    exact = REFERENCES["gelu"](ops.convert_to_numpy(ops.cast(points, "float64")))
    found = ops.convert_to_numpy(ops.cast(found, "float64"))
    np.testing.assert_allclose(found, exact, rtol=tolerance)
