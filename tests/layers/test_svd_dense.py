import inspect
import json

import keras
import numpy as np
import pytest
from keras import ops
from keras.src import testing

from keras_ortho import SVDDense
from keras_ortho.activations import LeakyReLU
from keras_ortho.initializers import NormalReflectors
from keras_ortho.parametrizations import spectral_deviation
from keras_ortho.parametrizations.reflectors import num_reflector_entries
from tests import reference
from tests.cells.building import refused
from tests.gradients import weight_gradients
from tests.parametrizations.test_svd import definition
from tests.saving import reloaded

pytestmark = pytest.mark.backends

EPS32, EPS64 = np.finfo("float32").eps, np.finfo("float64").eps


def weights_of(layer):
    return {w.name: ops.convert_to_numpy(w) for w in layer.weights}


def built(units, features, **kwargs):
    layer = SVDDense(units, **kwargs)
    layer.build((None, features))
    return layer


def matrix_of(weights, shape, margin=None, center=1.0):
    if margin is None:
        values = weights["kernel_singular_values"]
    else:
        sigmoid = 1 / (1 + np.exp(-weights["kernel_singular_logits"]))
        values = center + 2 * margin * (sigmoid - 0.5)
    left, right = weights["kernel_left_reflectors"], weights["kernel_right_reflectors"]
    return definition(left, right, values, *shape)


def lively(layer):
    random = np.random.default_rng(2)
    for weight in layer.trainable_variables:
        weight.assign(random.normal(size=weight.shape))
    return layer


SHAPES = [(1, 1, None), (4, 4, None), (5, 3, (2, 3)), (3, 6, None), (1, 5, 1)]


@pytest.mark.parametrize("margin", [None, 0.3])
@pytest.mark.parametrize(("features", "units", "reflections"), SHAPES)
def test_against_numpy(features, units, reflections, margin):
    layer = built(
        units,
        features,
        reflections=reflections,
        spectral_margin=margin,
        spectral_center=0.8,
        activation=LeakyReLU(0.2),
        dtype="float64",
    )
    weights = weights_of(lively(layer))
    kernel = matrix_of(weights, (features, units), margin, 0.8)
    atol = 100 * (features + units) * EPS64
    np.testing.assert_allclose(layer.kernel_matrix(), kernel, atol=atol)
    x = np.random.default_rng(0).normal(size=(2, 3, features))
    z = x @ kernel + weights["bias"]
    np.testing.assert_allclose(layer(x), np.where(z > 0, z, 0.2 * z), atol=atol)


@pytest.mark.parametrize("margin", [None, 0.3])
@pytest.mark.parametrize(("features", "units"), [(4, 3), (2, 4)])
def test_gradients(features, units, margin):
    layer = lively(built(units, features, spectral_margin=margin, dtype="float64"))
    x = np.random.default_rng(0).normal(size=(5, features))
    upstream = np.random.default_rng(1).normal(size=(5, units))
    _, found = weight_gradients(layer, lambda y: ops.sum(y * upstream), x)
    weights = weights_of(layer)
    assert set(found) == set(weights)
    for name, gradient in found.items():

        def loss(value, name=name):
            changed = {**weights, name: value}
            kernel = matrix_of(changed, (features, units), margin)
            return np.sum((x @ kernel + changed["bias"]) * upstream)

        expected = reference.central_differences(loss, weights[name], EPS64 ** (1 / 3))
        np.testing.assert_allclose(
            gradient, expected, atol=1e5 * EPS64 ** (2 / 3), err_msg=name
        )


@pytest.mark.slow_on_jax
def test_starts_with_the_center_as_every_singular_value():
    for margin in (None, 0.1):
        layer = built(30, 50, spectral_margin=margin, spectral_center=0.5)
        deviation = spectral_deviation(layer.kernel_matrix(), center=0.5)
        assert deviation <= 50 * EPS32


@pytest.mark.parametrize(("features", "units"), [(6, 4), (4, 6), (5, 5)])
@pytest.mark.parametrize("k", [1, 3, None])
def test_parameter_count(features, units, k):
    layer = built(units, features, reflections=k)
    rank = min(features, units)
    expected = num_reflector_entries(features, k or rank)
    expected += num_reflector_entries(units, k or rank) + rank + units
    assert layer.count_params() == expected
    if k is None:
        # The freedom of a matrix, and the length of each reflector.
        assert expected == features * units + 2 * rank + units


@pytest.mark.parametrize(("features", "units"), [(1, 1), (6, 4), (4, 6), (5, 5)])
@pytest.mark.parametrize("initializer", ["glorot_uniform", "array"])
def test_kernel_initializer_that_yields_a_matrix(features, units, initializer):
    array = np.random.default_rng(0).normal(size=(features, units)).astype("float32")
    layer = built(
        units,
        features,
        kernel_initializer=array if initializer == "array" else initializer,
    )
    kernel = ops.convert_to_numpy(layer.kernel_matrix())
    if initializer == "array":
        np.testing.assert_allclose(kernel, array, atol=100 * EPS32)
    else:
        assert 0 < np.abs(kernel).max() <= np.sqrt(6 / (features + units)) + EPS32 * 100


@pytest.mark.parametrize(("features", "units"), [(1, 1), (6, 4), (4, 6), (5, 5)])
def test_set_kernel_matrix(features, units):
    layer = built(units, features, dtype="float64")
    matrix = np.random.default_rng(1).normal(size=(features, units))
    layer.set_kernel_matrix(matrix)
    np.testing.assert_allclose(layer.kernel_matrix(), matrix, atol=1000 * EPS64)
    bounded = built(units, features, spectral_margin=0.5, dtype="float64")
    left, _, right = np.linalg.svd(matrix, full_matrices=False)
    matrix = left * np.linspace(0.6, 1.4, min(features, units)) @ right
    bounded.set_kernel_matrix(matrix)
    np.testing.assert_allclose(bounded.kernel_matrix(), matrix, atol=1000 * EPS64)


@pytest.mark.slow_on_jax
def test_matrices_that_do_not_fit():
    layer = built(3, 2, spectral_margin=0.1)
    for matrix, message in (
        (np.eye(3), r"Received: matrix.shape=\(3, 3\)"),
        (np.diag([1.0, 2.0, 1.0])[:2], "lie between 0.9 and 1.1. Received: between"),
    ):
        with refused(layer, message):
            layer.set_kernel_matrix(matrix)
    with pytest.raises(ValueError, match=r"must be 2 .*Received: reflections=\(1, 1\)"):
        built(3, 2, reflections=1).set_kernel_matrix(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"must be 2 .*Received: reflections=\(1, 1\)"):
        built(3, 2, reflections=1, kernel_initializer="glorot_uniform")
    with pytest.raises(ValueError, match="`kernel_initializer` must have the shape"):
        built(3, 2, kernel_initializer=np.eye(3))
    with pytest.raises(ValueError, match="with built=False"):
        SVDDense(3).set_kernel_matrix(np.eye(3))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("units", 0),
        ("units", 2.5),
        ("reflections", 0),
        ("reflections", 8),
        ("reflections", (1, 2, 3)),
        ("spectral_margin", -0.1),
        ("spectral_margin", "wide"),
        ("spectral_center", 0.0),
    ],
)
def test_arguments_out_of_range(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must .*Received: {name}="):
        SVDDense(**{"units": 7, name: value})


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"between 1 and 3.*Received: reflections=5"):
        built(7, 3, reflections=5)
    with pytest.raises(ValueError, match="must not be empty. Received: m=0"):
        SVDDense(3).build((None, 0))
    with pytest.raises(ValueError, match=r"Received: input_shape=\(None, None\)"):
        SVDDense(3).build((None, None))
    with pytest.raises(ValueError, match="incompatible"):
        built(3, 2)(np.zeros((4, 5)))


ARGUMENTS = {
    "units": 5,
    "reflections": [2, 3],
    "spectral_margin": 0.2,
    "spectral_center": 0.7,
    "activation": "relu",
    "use_bias": False,
    "kernel_initializer": NormalReflectors(seed=1),
    "bias_initializer": "ones",
    "kernel_regularizer": keras.regularizers.L2(0.1),
    "bias_regularizer": keras.regularizers.L2(0.2),
    "activity_regularizer": keras.regularizers.L2(0.3),
    "bias_constraint": keras.constraints.NonNeg(),
}


def test_config_holds_every_argument():
    declared = set(inspect.signature(SVDDense).parameters) - {"kwargs"}
    assert set(ARGUMENTS) == declared
    config = SVDDense(**ARGUMENTS, name="named", dtype="mixed_bfloat16").get_config()
    assert declared <= set(config)
    again = SVDDense.from_config(json.loads(json.dumps(config)))
    assert again.get_config() == config
    assert (again.reflections, again.spectral_margin) == ([2, 3], 0.2)
    assert again.name == "named"


@pytest.mark.slow_on_jax
def test_regularizers():
    layer = built(
        4,
        3,
        kernel_regularizer=keras.regularizers.L2(0.1),
        bias_regularizer=keras.regularizers.L1(0.2),
        activity_regularizer=keras.regularizers.L2(0.0),
        bias_initializer="ones",
    )
    layer(np.zeros((2, 3)))
    kernel = ops.convert_to_numpy(layer.kernel_matrix())
    # The squares of the singular values are those of the entries.
    expected = [0.1 * np.sum(kernel**2), 0.2 * 4, 0]
    np.testing.assert_allclose(sorted(map(float, layer.losses)), sorted(expected), 1e-5)


class KerasChecks(testing.TestCase):
    """Keras's own checks of a layer."""

    def check(self, arguments, features, shape=()):
        self.run_layer_test(
            SVDDense,
            arguments,
            input_shape=(2, *shape, features),
            expected_output_shape=(2, *shape, arguments["units"]),
            expected_num_trainable_weights=3 + arguments.get("use_bias", True),
            expected_num_non_trainable_weights=0,
            expected_num_seed_generators=0,
            expected_num_losses="activity_regularizer" in arguments,
            supports_masking=True,
        )


@pytest.mark.parametrize(
    ("arguments", "features", "shape"),
    [
        ({"units": 4}, 4, ()),
        ({"units": 3, "spectral_margin": 0.1, "activation": "relu"}, 5, (7,)),
        ({"units": 6, "use_bias": False, "reflections": (2, 1)}, 3, ()),
        ({"units": 4, "activity_regularizer": "l2"}, 2, (3, 2)),
    ],
)
def test_keras_layer_checks(arguments, features, shape):
    KerasChecks().check(arguments, features, shape)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("jit_compile", "margin"),
    # Without XLA JAX runs one operation after the other.
    [(keras.backend.backend() == "jax", None), (True, 0.2)],
)
def test_trains_saves_and_loads(jit_compile, margin, tmp_path):
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((6,)),
            SVDDense(8, reflections=3, spectral_margin=margin, activation="relu"),
            SVDDense(2),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), "mse", jit_compile=jit_compile)
    x = np.random.default_rng(0).normal(size=(64, 6))
    before = model.get_weights()
    y = np.abs(x[:, :2])
    losses = model.fit(x, y, batch_size=4, epochs=5, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]
    for weight, old in zip(model.get_weights(), before, strict=True):
        assert not np.array_equal(weight, old)
    reloaded(model, tmp_path, x)


@pytest.mark.slow_on_jax
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16", "float16"])
def test_low_precision(policy):
    layer = built(6, 5, dtype=policy)
    x = np.random.default_rng(0).normal(size=(4, 5)).astype("float32")
    compute = policy.removeprefix("mixed_")
    assert keras.backend.standardize_dtype(layer.kernel_matrix().dtype) == "float32"
    outputs = layer(x)
    assert keras.backend.standardize_dtype(outputs.dtype) == compute
    exact = built(6, 5)
    exact.set_weights(layer.get_weights())
    eps = 2.0**-7 if compute == "bfloat16" else 2.0**-10
    np.testing.assert_allclose(
        ops.convert_to_numpy(ops.cast(outputs, "float32")),
        exact(x),
        atol=10 * eps,
    )
    model = keras.Sequential([keras.Input((5,)), layer])
    model.compile("sgd", "mse")
    model.fit(x, np.ones((4, 6)), verbose=0)
    assert all(np.isfinite(w).all() for w in layer.get_weights())


def test_is_built_within_fit():
    """With a matrix whose inverse is taken while a training step is being traced."""
    layer = SVDDense(4, kernel_initializer="glorot_uniform")
    model = keras.Sequential([layer])
    model.compile("adam", "mse")
    model.fit(np.ones((3, 2)), np.zeros((3, 4)), verbose=0)
    assert np.isfinite(layer.kernel_matrix()).all()
