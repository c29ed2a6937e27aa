import keras
import numpy as np
import pytest
from keras import ops
from keras.src import testing

from keras_ortho import BNPDense, ModReLU, OrthoDense, ScoRNN
from keras_ortho.activations import (
    LeakyReLU,
    complex_modrelu,
    get,
    modrelu,
    oplu,
    precise,
    smoothed_modrelu,
)
from keras_ortho.parametrizations import ScaledCayley
from tests import reference
from tests.gradients import gradients
from tests.saving import reloaded

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps


of_parts = reference.complex_reals


def leaky(slope):
    return lambda z, b: np.where(z + b > 0, z + b, slope * (z + b))


def after_bias(activation):
    return lambda z, b: precise(activation)(z + b)


# Each with its definition, and the parts of a unit. The last two Keras computes in
# float32 on one backend or another.
FORMS = {
    "modrelu": (modrelu, reference.modrelu, 1),
    "exact": (complex_modrelu, of_parts(reference.complex_modrelu), 2),
    "smoothed": (smoothed_modrelu, of_parts(reference.smoothed_modrelu), 2),
    "oplu": (  # Of an odd number.
        lambda z, b: oplu((z + b)[..., 1:]),
        lambda z, b: reference.oplu((z + b)[..., 1:]),
        1,
    ),
    "leaky": (after_bias(LeakyReLU(0.3)), leaky(0.3), 1),
    "leaky_relu": (after_bias(keras.activations.leaky_relu), leaky(0.2), 1),
    "tanh": (after_bias(keras.activations.tanh), lambda z, b: np.tanh(z + b), 1),
}


@pytest.mark.parametrize("name", list(FORMS))
def test_value_and_gradient(name):
    function, definition, parts = FORMS[name]
    random = np.random.default_rng(0)
    z, b = random.normal(size=(20, 14)), random.normal(size=14 // parts)
    expected = definition(z, b)
    # Near the kink `|z| = -b` the digits of `|z|` are lost, not more.
    np.testing.assert_allclose(function(z, b), expected, rtol=8 * EPS, atol=8 * EPS)
    upstream = random.normal(size=expected.shape)
    found = gradients(lambda z, b: ops.sum(function(z, b) * upstream), z, b)
    # The third derivative is at most some |b| / |z|^3 = 3e4, on a unit each.
    step = 1e-6
    atol = 1e5 * step**2 + 280 * EPS / step
    of_z, of_b = (lambda z: definition(z, b)), (lambda b: definition(z, b))
    for gradient, of, point in zip(found, (of_z, of_b), (z, b), strict=True):
        differences = reference.central_differences(
            lambda p, of=of: np.sum(upstream * of(p)), point, step
        )
        np.testing.assert_allclose(gradient, differences, atol=atol)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("name", list(FORMS))
def test_in_few_bits(name, dtype):
    """The dtype stays, and 300^2, more than float16 holds, does not overflow."""
    function, definition, parts = FORMS[name]
    z = np.concatenate([np.linspace(-6, 6, 14), [-400, -20, -1e-3, 1e-3, 20, 300]])
    b = np.linspace(-1, 1, 20 // parts)
    found = function(ops.cast(z, dtype), ops.cast(b, dtype))
    assert keras.backend.standardize_dtype(found.dtype) == dtype
    z, b = (np.asarray(ops.cast(ops.cast(x, dtype), "float64")) for x in (z, b))
    # A few roundings, of the sum of `z` and `b` too.
    eps = {"bfloat16": 2**-7, "float16": 2**-10, "float32": 2**-23}[dtype]
    found = ops.convert_to_numpy(ops.cast(found, "float64"))
    atol = 8 * eps
    np.testing.assert_allclose(found, definition(z, b), rtol=8 * eps, atol=atol)


def test_integers_are_taken_for_floats():
    found = modrelu(np.array([3, 4]), np.array([-2.0, 1]))
    np.testing.assert_allclose(found, [1, 5])


@pytest.mark.parametrize(
    ("function", "z", "b", "to_z", "to_b"),
    [
        (modrelu, [0, 0, 0.5], [1, 0, -0.5], [0, 0, 0], [0, 0, 0]),
        (complex_modrelu, [0] * 6, [1, 0, -1], [1, 1, 0, 1, 1, 0], [0, 0, 0]),
        (after_bias(LeakyReLU(0.3)), [0, -1, 1], [0] * 3, *[[0.3, 0.3, 1]] * 2),
    ],
)
def test_gradient_at_the_kinks(function, z, b, to_z, to_b):
    z, b = np.array(z, "float64"), np.array(b, "float64")
    found = gradients(lambda z, b: ops.sum(function(z, b)), z, b)
    np.testing.assert_array_equal(found[0], to_z)
    np.testing.assert_array_equal(found[1], to_b)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_exact_without_a_bias_is_the_identity(dtype):
    # Also of what is too small for a square, or too large for one.
    z = [3.0, -1e-7, 0.0, 1e-7, 300.0, -2.0]
    z = np.array(z if dtype == "float16" else [*z, 1e-30, 1e25], dtype)
    found = complex_modrelu(z, np.zeros(len(z) // 2, dtype))
    np.testing.assert_array_equal(found, z)


def test_keras_layer_checks():
    testing.TestCase().run_layer_test(
        ModReLU,
        {"bias_initializer": "ones", "bias_regularizer": "l2"},
        input_shape=(2, 3, 4),
        expected_output_shape=(2, 3, 4),
        expected_num_trainable_weights=1,
        expected_num_non_trainable_weights=0,
        expected_num_losses=1,
        supports_masking=True,
    )


def test_by_name_and_in_a_file(tmp_path):
    layers = [
        ScoRNN(4, activation="oplu"),
        OrthoDense(3, ScaledCayley(1), "oplu"),
        BNPDense(3, activation="tanh"),
        keras.layers.Dense(2, activation=LeakyReLU(0.3)),
    ]
    model = reloaded(keras.Sequential([keras.Input((3, 2)), *layers]), tmp_path)
    found = [layer.activation for layer in model.layers]
    # What a layer computes with is not what it stores.
    assert found == [oplu, oplu, keras.activations.tanh, LeakyReLU(0.3)]


Z = ops.convert_to_tensor(np.array([3 + 4j, 1 + 1j]), "complex64")
COMPLEX_NUMBERS = r"must be real: .* Received: .*complex"
BIAS = r"shape \(n,\) for .* Received: bias"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        # A cast would drop their imaginary parts.
        (lambda: modrelu(Z, np.zeros(2)), COMPLEX_NUMBERS),
        (lambda: modrelu(np.ones(2), Z), COMPLEX_NUMBERS),
        (lambda: LeakyReLU()(Z), COMPLEX_NUMBERS),
        (lambda: oplu(Z), COMPLEX_NUMBERS),
        (lambda: modrelu(np.ones((2, 4)), np.ones(())), BIAS),
        (lambda: modrelu(np.ones((2, 4)), np.ones((1, 4))), BIAS),
        (lambda: smoothed_modrelu(np.ones((2, 8)), np.ones(8)), BIAS),
        (lambda: complex_modrelu(np.ones((2, 3)), np.ones(1)), BIAS),
        (lambda: LeakyReLU(-0.1), "Received: negative_slope=-0.1"),
        (lambda: ModReLU(bias_initializer=np.ones(3)).build((2, 4)), "bias_init"),
        (lambda: ModReLU().build((2, None)), r"Received: input_shape=\(2, None\)"),
        (lambda: get("no_such"), "no_such"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
