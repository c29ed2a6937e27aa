import keras
import numpy as np
import pytest
from keras import ops
from keras.src import testing

from keras_ortho import ModReLU, OrthoDense, ScoRNN
from keras_ortho.activations import (
    LeakyReLU,
    complex_modrelu,
    get,
    modrelu,
    oplu,
    smoothed_modrelu,
)
from keras_ortho.parametrizations import ScaledCayley
from tests import reference
from tests.gradients import gradients, second_derivative

pytestmark = pytest.mark.backends


def test_literal_values():
    z = np.array([-2.0, -0.5, 0.0, 0.5, 3.0])
    np.testing.assert_array_equal(modrelu(z, -np.ones(5)), [-1, 0, 0, 0, 2])
    np.testing.assert_array_equal(modrelu(z, np.ones(5)), [-3, -1.5, 0, 1.5, 4])


def test_is_its_definition():
    random = np.random.default_rng(0)
    z, b = random.normal(size=(50, 7)), random.normal(size=7)
    np.testing.assert_array_equal(modrelu(z, b), reference.modrelu(z, b))


def test_gradient():
    random = np.random.default_rng(0)
    z, b = random.normal(size=(50, 7)), random.normal(size=7)
    upstream = random.normal(size=(50, 7))
    found = gradients(lambda z, b: ops.sum(modrelu(z, b) * upstream), z, b)
    # Linear on either side of the kinks, none of which is this near: central
    # differences are exact up to rounding.
    step = 1e-5
    assert np.abs(z).min() > step
    assert np.abs(np.abs(z) + b).min() > step
    for index, point in enumerate([z, b]):
        expected = reference.central_differences(
            lambda p, i=index: np.sum(
                upstream * reference.modrelu(*((p, b) if i == 0 else (z, p)))
            ),
            point,
            step,
        )
        # A sum of 350 terms is exact to 350 eps, divided by the step.
        atol = 350 * np.finfo("float64").eps / step
        np.testing.assert_allclose(found[index], expected, atol=atol)


@pytest.mark.parametrize(("z", "b"), [(0.0, 1.0), (0.0, 0.0), (0.5, -0.5)])
def test_gradient_is_zero_at_the_kinks(z, b):
    found = gradients(lambda z, b: ops.sum(modrelu(z, b)), np.array([z]), np.array([b]))
    np.testing.assert_array_equal(found, 0)


COMPLEX = {
    "exact": (complex_modrelu, reference.complex_modrelu),
    "smoothed": (smoothed_modrelu, reference.smoothed_modrelu),
}


@pytest.mark.parametrize("form", list(COMPLEX))
def test_complex_is_its_definition(form):
    function, definition = COMPLEX[form]
    random = np.random.default_rng(0)
    z, b = random.normal(size=(2, 50, 7)), random.normal(size=7)
    z[:, 0] = 0
    found = function(np.concatenate(z, axis=-1), b)
    expected = definition(z[0] + 1j * z[1], b)
    # Near the kink `|z| = -b` the digits of `|z|` are lost, not more.
    np.testing.assert_allclose(
        found,
        np.concatenate([expected.real, expected.imag], axis=-1),
        rtol=8 * np.finfo("float64").eps,
        atol=8 * np.finfo("float64").eps,
    )


@pytest.mark.parametrize("form", list(COMPLEX))
def test_complex_gradient(form):
    function, definition = COMPLEX[form]
    random = np.random.default_rng(0)
    z, b = random.normal(size=(20, 14)), random.normal(size=7)
    upstream = random.normal(size=(20, 14))
    found = gradients(lambda z, b: ops.sum(function(z, b) * upstream), z, b)
    modulus = np.abs(reference.as_complex(z))
    assert modulus.min() > 0.05
    assert np.abs(modulus + b).min() > 1e-3

    def value(z, b):
        return np.sum(
            upstream * reference.as_reals(definition(reference.as_complex(z), b))
        )

    # The third derivative is at most some |b| / |z|^3 = 3e4, on a unit each.
    step = 1e-6
    atol = 1e5 * step**2 + 280 * np.finfo("float64").eps / step
    for index in range(2):
        expected = reference.central_differences(
            lambda p, i=index: value(*((p, b) if i == 0 else (z, p))),
            (z, b)[index],
            step,
        )
        np.testing.assert_allclose(found[index], expected, atol=atol)


@pytest.mark.parametrize("form", list(COMPLEX))
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_complex_gradient_near_zero_is_finite(form, dtype):
    function, _ = COMPLEX[form]
    sizes = np.array([[0.0], [1e-30], [1e-8], [1e-4], [0.1]])
    z = np.concatenate([0.6 * sizes * np.ones(3), -0.8 * sizes * np.ones(3)], axis=1)
    b = np.array([1.0, 0.0, -1.0])

    def total(z, b):
        values = function(ops.cast(z, dtype), ops.cast(b, dtype))
        return ops.sum(ops.cast(values, "float64"))

    to_z, to_b = gradients(total, z, b)
    assert np.isfinite(to_z).all()
    assert np.isfinite(to_b).all()
    np.testing.assert_array_equal(to_z[:, [2, 5]], 0)
    if form == "exact":
        np.testing.assert_array_equal(to_z[:, [1, 4]], 1)


def test_exact_at_zero():
    found = complex_modrelu(np.zeros(6), np.array([1.0, 0.0, -1.0]))
    np.testing.assert_array_equal(found, 0)
    to_z, to_b = gradients(
        lambda z, b: ops.sum(complex_modrelu(z, b)),
        np.zeros(6),
        np.array([1.0, 0.0, -1.0]),
    )
    np.testing.assert_array_equal(to_z, [1, 1, 0, 1, 1, 0])
    np.testing.assert_array_equal(to_b, 0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_exact_without_a_bias_is_the_identity(dtype):
    # Also of what is too small for a square, or too large for one.
    z = [3.0, -1e-7, 0.0, 1e-7, 300.0, -2.0]
    z = np.array(z if dtype == "float16" else [*z, 1e-30, 1e25], dtype)
    found = complex_modrelu(z, np.zeros(len(z) // 2, dtype))
    np.testing.assert_array_equal(found, z)


@pytest.mark.parametrize("radius", [0.0, 0.5])
def test_exact_has_second_derivatives(radius):
    """Of `|t| (1 + b / |z|)`, `z = radius + i t`: at `t = 0` it is `2 b / radius`."""

    def function(t):
        z = ops.stack([ops.cast(radius, "float64"), t])
        return t * complex_modrelu(z, np.array([0.25]))[1]

    expected = 2 + (2 * 0.25 / radius if radius else 0)
    found = float(second_derivative(function, np.float64(0.0)))
    assert found == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("form", list(COMPLEX))
def test_complex_does_not_overflow_in_float16(form):
    z = ops.cast([[300.0, 400.0]], "float16")
    found = COMPLEX[form][0](z, ops.cast([-100.0], "float16"))
    assert keras.backend.standardize_dtype(found.dtype) == "float16"
    np.testing.assert_allclose(found, [[240.0, 320.0]], rtol=1e-3)


class ModReLUTest(testing.TestCase):
    def test_keras_layer_checks(self):
        self.run_layer_test(
            ModReLU,
            {"bias_initializer": "ones", "bias_regularizer": "l2"},
            input_shape=(2, 3, 4),
            expected_output_shape=(2, 3, 4),
            expected_num_trainable_weights=1,
            expected_num_non_trainable_weights=0,
            expected_num_losses=1,
            supports_masking=True,
        )


@pytest.mark.slow
def test_starts_as_the_identity_and_learns():
    model = keras.Sequential([keras.Input((3,)), ModReLU()])
    x = np.array([[-2.0, 0.5, 3.0]], "float32")
    np.testing.assert_array_equal(model(x), x)
    model.compile(keras.optimizers.SGD(0.5), "mse")
    model.fit(x, np.array([[-3.0, 0.5, 2.0]]), epochs=50, verbose=0)
    np.testing.assert_allclose(model.layers[0].bias, [1, 0, -1], atol=1e-3)


def test_last_axis_must_be_known():
    with pytest.raises(ValueError, match=r"Received: input_shape=\(2, None\)"):
        ModReLU().build((2, None))


def test_of_integers():
    """As of the same numbers as floats."""
    for function, b in {modrelu: [-2, 1], complex_modrelu: [-2]}.items():
        found = function(np.array([3, 4]), np.array(b, "float32"))
        expected = function(np.array([3.0, 4.0], "float32"), np.array(b, "float32"))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("function", [modrelu, complex_modrelu, smoothed_modrelu])
@pytest.mark.parametrize("shape", [(), (1,), (1, 4), (8,)])
def test_a_bias_of_another_shape(function, shape):
    n = 4 if function is modrelu else 8
    with pytest.raises(ValueError, match=r"the shape \(4,\).*Received: bias"):
        function(np.ones((2, n)), np.ones(shape))
    with pytest.raises(ValueError, match="bias_initializer"):
        ModReLU(bias_initializer=np.ones(3)).build((2, 4))


@pytest.mark.parametrize("n", [1, 2, 6, 7])
def test_oplu(n):
    """By definition: the larger of units i and i + n // 2 comes first."""
    random = np.random.default_rng(0)
    z, upstream = random.normal(size=(2, 3, 4, n))
    z[0, 0] = 1  # Ties, where it is the identity.
    expected, to_z = z.copy(), upstream.copy()
    half = n // 2
    for index in np.ndindex(3, 4):
        for i in range(half):
            first, second = z[index][[i, i + half]]
            if first < second:
                expected[index][[i, i + half]] = second, first
                to_z[index][[i, i + half]] = upstream[index][[i + half, i]]
    np.testing.assert_array_equal(oplu(z), expected)
    (found,) = gradients(lambda z: ops.sum(oplu(z) * upstream), z)
    np.testing.assert_array_equal(found, to_z)


def test_oplu_by_its_name_and_in_a_file(tmp_path):
    assert get("oplu") is oplu
    assert get("tanh") is keras.activations.tanh
    with pytest.raises(ValueError, match="no_such"):
        get("no_such")
    layers = [ScoRNN(4, activation="oplu"), OrthoDense(3, ScaledCayley(1), "oplu")]
    layers.append(keras.layers.Dense(2, activation=oplu))
    model = keras.Sequential([keras.Input((3, 2)), *layers])
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.layers[0].activation is oplu
    assert loaded.layers[1].activation is oplu
    assert loaded.layers[2].activation is oplu


@pytest.mark.parametrize("slope", [0.0, 0.1, 1.0])
def test_leaky_relu(slope):
    z = np.array([-2.0, -0.5, 0.0, 0.5, 3.0])
    expected = np.array([-2 * slope, -0.5 * slope, 0, 0.5, 3])
    np.testing.assert_array_equal(LeakyReLU(slope)(z), expected)
    (found,) = gradients(lambda z: ops.sum(LeakyReLU(slope)(z)), z)
    np.testing.assert_array_equal(found, [slope, slope, slope, 1, 1])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_leaky_relu_keeps_the_dtype(dtype):
    values = LeakyReLU()(ops.cast(np.array([-1.0, 1.0]), dtype))
    assert keras.backend.standardize_dtype(values.dtype) == dtype


def test_leaky_relu_survives_a_config(tmp_path):
    model = keras.Sequential(
        [keras.Input((2,)), keras.layers.Dense(2, activation=LeakyReLU(0.3))]
    )
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.layers[0].activation == LeakyReLU(0.3)
    assert LeakyReLU(0.3) != LeakyReLU(0.1)
    assert hash(LeakyReLU(0.1)) == hash(LeakyReLU())
    assert LeakyReLU() != "leaky_relu"


@pytest.mark.parametrize("slope", [-0.1, float("inf"), float("nan"), None, "0.1"])
def test_slope_out_of_range(slope):
    with pytest.raises(ValueError, match="Received: negative_slope="):
        LeakyReLU(slope)


def test_the_factor_of_a_small_number_may_be_more_than_float16_holds():
    small = np.array([0, 1e-4, 1e-4, 1e-4], "float16")
    found = complex_modrelu(small, np.array([7, 7], "float16"))
    np.testing.assert_allclose(found, [0, 4.95, 7, 4.95], rtol=1e-2)


def test_a_bias_of_another_dtype():
    inputs, bias = np.array([-2, 0.5], "float32"), np.array([-1.0, 1.0])
    found = modrelu(inputs, bias)
    assert keras.backend.standardize_dtype(found.dtype) == "float32"
    np.testing.assert_array_equal(found, [-1, 1.5])


def test_leaky_relu_of_integers():
    found = LeakyReLU(0.5)(np.array([-2, 3]))
    assert keras.backend.standardize_dtype(found.dtype) == keras.config.floatx()
    np.testing.assert_array_equal(found, [-1, 3])


NUMBERS = np.array([3 + 4j, 1 + 1j])


@pytest.mark.parametrize(
    "call",
    [
        lambda z: modrelu(z, np.zeros(2)),
        lambda z: complex_modrelu(z, np.zeros(1)),
        lambda z: smoothed_modrelu(z, np.zeros(1)),
        lambda z: modrelu(np.ones(2), z),
        LeakyReLU(),
        oplu,
        ModReLU(),
    ],
)
def test_complex_numbers_are_refused(call):
    """A cast would drop their imaginary parts."""
    with pytest.raises(ValueError, match=r"must be real: .* Received: .*complex"):
        call(ops.convert_to_tensor(NUMBERS, "complex64"))


@pytest.mark.parametrize("function", [complex_modrelu, smoothed_modrelu])
def test_half_a_complex_unit(function):
    with pytest.raises(ValueError, match=r"imaginary part .* Received: .*\(2, 3\)$"):
        function(np.ones((2, 3)), np.ones(1))


def test_an_array_is_no_activation():
    with pytest.raises(ValueError, match="Could not interpret"):
        get(np.ones(2))
