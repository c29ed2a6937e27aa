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


# Each with its definition, and the units of a number of inputs.
FORMS = {
    "modrelu": (modrelu, reference.modrelu, 1),
    "exact": (complex_modrelu, reference.complex_reals(reference.complex_modrelu), 2),
    "smoothed": (
        smoothed_modrelu,
        reference.complex_reals(reference.smoothed_modrelu),
        2,
    ),
    "oplu": (lambda z, b: oplu(z + b), lambda z, b: reference.oplu(z + b), 1),
    "oplu of an odd number": (
        lambda z, b: oplu((z + b)[..., 1:]),
        lambda z, b: reference.oplu((z + b)[..., 1:]),
        1,
    ),
    "leaky": (
        lambda z, b: LeakyReLU(0.3)(z + b),
        lambda z, b: np.where(z + b > 0, z + b, 0.3 * (z + b)),
        1,
    ),
}
COMPLEX = {name: FORMS[name][0] for name in ("exact", "smoothed")}


@pytest.mark.parametrize("name", list(FORMS))
def test_value_and_gradient(name):
    function, definition, parts = FORMS[name]
    random = np.random.default_rng(0)
    z, b = random.normal(size=(20, 14)), random.normal(size=14 // parts)
    expected = definition(z, b)
    eps = np.finfo("float64").eps
    # Near the kink `|z| = -b` the digits of `|z|` are lost, not more.
    np.testing.assert_allclose(function(z, b), expected, rtol=8 * eps, atol=8 * eps)
    upstream = random.normal(size=expected.shape)
    found = gradients(lambda z, b: ops.sum(function(z, b) * upstream), z, b)
    # The third derivative is at most some |b| / |z|^3 = 3e4, on a unit each.
    step = 1e-6
    atol = 1e5 * step**2 + 280 * eps / step
    for index in range(2):
        differences = reference.central_differences(
            lambda p, i=index: np.sum(
                upstream * definition(*((p, b) if i == 0 else (z, p)))
            ),
            (z, b)[index],
            step,
        )
        np.testing.assert_allclose(found[index], differences, atol=atol)


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda z: modrelu(z, -np.ones(5)), [-1, 0, 0, 0, 2]),
        (lambda z: modrelu(z, np.ones(5)), [-3, -1.5, 0, 1.5, 4]),
        (LeakyReLU(0.5), [-1, -0.25, 0, 0.5, 3]),
        (oplu, [0, 0.5, -2, -0.5, 3]),
        # As of the same numbers as floats.
        (lambda z: modrelu(np.array([3, 4]), np.array([-2.0, 1])), [1, 5]),
        (lambda z: complex_modrelu(np.array([3, 4]), np.array([-2.5])), [1.5, 2]),
        (lambda z: LeakyReLU(0.5)(np.array([-2, 3])), [-1, 3]),
    ],
)
def test_literal_values(function, wanted):
    found = function(np.array([-2.0, -0.5, 0.0, 0.5, 3.0]))
    np.testing.assert_allclose(found, wanted, rtol=1e-7)


@pytest.mark.parametrize(("z", "b"), [(0.0, 1.0), (0.0, 0.0), (0.5, -0.5)])
def test_gradient_is_zero_at_the_kinks(z, b):
    found = gradients(lambda z, b: ops.sum(modrelu(z, b)), np.array([z]), np.array([b]))
    np.testing.assert_array_equal(found, 0)


@pytest.mark.parametrize("form", list(COMPLEX))
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_complex_gradient_near_zero_is_finite(form, dtype):
    function = COMPLEX[form]
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
    found = COMPLEX[form](z, ops.cast([-100.0], "float16"))
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


def test_oplu_by_its_name_and_in_a_file(tmp_path):
    assert get("oplu") is oplu
    assert get("tanh") is keras.activations.tanh
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


def test_the_factor_of_a_small_number_may_be_more_than_float16_holds():
    small = np.array([0, 1e-4, 1e-4, 1e-4], "float16")
    found = complex_modrelu(small, np.array([7, 7], "float16"))
    np.testing.assert_allclose(found, [0, 4.95, 7, 4.95], rtol=1e-2)


def test_a_bias_of_another_dtype():
    inputs, bias = np.array([-2, 0.5], "float32"), np.array([-1.0, 1.0])
    found = modrelu(inputs, bias)
    assert keras.backend.standardize_dtype(found.dtype) == "float32"
    np.testing.assert_array_equal(found, [-1, 1.5])


Z = ops.convert_to_tensor(np.array([3 + 4j, 1 + 1j]), "complex64")
ONES, EIGHT = np.ones((2, 4)), np.ones((2, 8))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        # A cast would drop their imaginary parts.
        *(
            (call, r"must be real: .* Received: .*complex")
            for call in (
                lambda: modrelu(Z, np.zeros(2)),
                lambda: complex_modrelu(Z, np.zeros(1)),
                lambda: smoothed_modrelu(Z, np.zeros(1)),
                lambda: modrelu(np.ones(2), Z),
                lambda: LeakyReLU()(Z),
                lambda: oplu(Z),
                lambda: ModReLU()(Z),
            )
        ),
        *(
            (lambda f=f, x=x, s=s: f(x, np.ones(s)), r"shape \(4,\).*Received: bias")
            for f, x in (
                (modrelu, ONES),
                (complex_modrelu, EIGHT),
                (smoothed_modrelu, EIGHT),
            )
            for s in ((), (1,), (1, 4), (8,))
        ),
        *(
            (lambda f=f: f(np.ones((2, 3)), np.ones(1)), r"imaginary part .*\(2, 3\)$")
            for f in (complex_modrelu, smoothed_modrelu)
        ),
        *(
            (lambda slope=slope: LeakyReLU(slope), "Received: negative_slope=")
            for slope in (-0.1, float("inf"), float("nan"), None, "0.1")
        ),
        (
            lambda: ModReLU(bias_initializer=np.ones(3)).build((2, 4)),
            "bias_initializer",
        ),
        (lambda: ModReLU().build((2, None)), r"Received: input_shape=\(2, None\)"),
        (lambda: get(np.ones(2)), "Could not interpret"),
        (lambda: get("no_such"), "no_such"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
