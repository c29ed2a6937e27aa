"""Dense layers with a kernel made of variables."""

import functools
import inspect

import keras
import numpy as np
import pytest
from keras import ops
from keras.src import testing

from keras_ortho import BNPDense, OrthoDense, SVDDense
from keras_ortho.activations import LeakyReLU
from keras_ortho.optimizers import group_of
from keras_ortho.parametrizations import Householder
from keras_ortho.parametrizations.svd import spectral_deviation
from tests import reference
from tests.gradients import weight_gradients
from tests.saving import reloaded

pytestmark = [
    pytest.mark.backends,
    pytest.mark.filterwarnings("ignore:`shuffle=True` was passed"),
]
EPS32, EPS64 = np.finfo("float32").eps, np.finfo("float64").eps
MAKERS = {
    "bnp": BNPDense,
    "ortho": functools.partial(OrthoDense, parametrization=Householder()),
    "svd": SVDDense,
}
SHARED = {"units": 3, "activation": "relu", "bias_initializer": "ones"}
SHARED |= {"kernel_regularizer": "l2", "activity_regularizer": "l2"}
SHARED |= {"bias_regularizer": "l1", "bias_constraint": "non_neg"}
BOUNDED = {"spectral_margin": 0.2, "spectral_center": 0.7, "reflections": [2, 3]}
DRAWN = {"kernel_initializer": "he_normal"}
REFLECTORS = {"kernel_initializer": "normal_reflectors", "use_bias": False}
OWN = {
    "bnp": {"epsilon": 0.1, "kernel_constraint": "max_norm", **DRAWN},
    "ortho": {"parametrization": Householder(3), **REFLECTORS},
    "svd": {**BOUNDED, **REFLECTORS},
}


@pytest.mark.parametrize(
    ("name", "shape"), [("bnp", (2, 5, 4)), ("ortho", (2, 5)), ("svd", (2, 3, 7, 5))]
)
def test_keras_layer_checks(name, shape):
    """With every argument, which a config holds."""
    cls, given = getattr(MAKERS[name], "func", MAKERS[name]), SHARED | OWN[name]
    assert set(inspect.signature(cls).parameters) - {"kwargs"} <= given.keys()
    config, default = cls(**given).get_config(), MAKERS[name](4).get_config()
    assert all(config[argument] != default[argument] for argument in given)
    testing.TestCase().run_layer_test(
        cls,
        given,
        input_shape=shape,
        expected_output_shape=(*shape[:-1], 3),
        expected_num_non_trainable_weights=0,
        expected_num_seed_generators=0,
        supports_masking=True,
    )


@pytest.mark.parametrize("name", MAKERS)
def test_trains_saves_and_loads(name, tmp_path):
    layer = MAKERS[name](3, activation="tanh", kernel_regularizer="l2")
    model = keras.Sequential([keras.Input((5,)), layer])
    model.compile("sgd", "mse")
    x = np.random.default_rng(0).normal(size=(16, 5)).astype("float32")
    before = model.get_weights()
    model.fit(x, np.abs(x[:, :3]), verbose=0)
    for weight, old in zip(model.get_weights(), before, strict=True):
        assert not np.array_equal(weight, old)
    assert reloaded(model, tmp_path, x).layers[0].get_config() == layer.get_config()
    group = "recurrent" if name == "ortho" else "others"
    assert {group_of(w) for w in layer.weights[:-1]} == {group}
    assert group_of(layer.bias) == "others"


@pytest.mark.parametrize(
    ("name", "policy"), [("ortho", "mixed_bfloat16"), ("svd", "float16")]
)
def test_low_precision(name, policy):
    """The kernel is made in float32, from inputs of any dtype."""
    layer, exact = MAKERS[name](6, dtype=policy), MAKERS[name](6)
    x = np.random.default_rng(0).integers(-2, 2, (4, 5))
    outputs, _ = layer(x), exact(x)
    assert keras.backend.standardize_dtype(layer.kernel_matrix().dtype) == "float32"
    assert keras.backend.standardize_dtype(outputs.dtype) in policy
    exact.set_weights(layer.get_weights())
    eps = 2.0**-10 if policy == "float16" else 2.0**-7
    found = ops.convert_to_numpy(ops.cast(outputs, "float32"))
    np.testing.assert_allclose(found, exact(x), atol=10 * eps)


@pytest.mark.parametrize(("features", "units"), [(5, 5), (7, 3), (3, 7)])
def test_ortho_dense(features, units):
    x = np.random.default_rng(0).normal(size=(4, 2, features))
    order = max(features, units)
    square = Householder().sample(order, seed=0)
    given = {"kernel_initializer": square, "dtype": "float64"}
    layer = OrthoDense(units, Householder(), "tanh", **given)
    layer(x)
    layer.bias.assign(np.arange(units))
    for matrix in (square, square.T):
        kernel = ops.convert_to_numpy(layer.kernel_matrix())
        np.testing.assert_allclose(kernel, matrix[:features, :units], atol=1e-13)
        expected = np.tanh(x @ kernel + np.arange(units))
        np.testing.assert_allclose(layer(x), expected, rtol=1e-13, atol=1e-13)
        layer.set_square_matrix(square.T)


def svd_dense(units, features, **kwargs):
    """A layer with random weights, which it returns too."""
    layer = SVDDense(units, dtype="float64", **kwargs)
    layer.build((None, features))
    random = np.random.default_rng(2)
    for weight in layer.trainable_variables:
        weight.assign(random.normal(size=weight.shape))
    return layer, {w.name: ops.convert_to_numpy(w) for w in layer.weights}


def svd_matrix(weights, shape, margin=None, center=1.0):
    left, right, values, _ = weights.values()
    if margin is not None:
        values = center + 2 * margin * (1 / (1 + np.exp(-values)) - 0.5)
    return reference.svd(left, right, values, *shape)


@pytest.mark.parametrize("margin", [None, 0.3])
@pytest.mark.parametrize(
    ("features", "units", "reflections"),
    [(1, 1, None), (5, 3, (2, 3)), (1, 5, 1), (3, 6, None)],
)
def test_svd_dense(features, units, reflections, margin):
    given = {"reflections": reflections, "activation": LeakyReLU(0.2)}
    given |= {"spectral_margin": margin, "spectral_center": 0.8}
    layer, weights = svd_dense(units, features, **given)
    kernel = svd_matrix(weights, (features, units), margin, 0.8)
    atol = 100 * (features + units) * EPS64
    np.testing.assert_allclose(layer.kernel_matrix(), kernel, atol=atol)
    x = np.random.default_rng(0).normal(size=(2, 3, features))
    z = x @ kernel + weights["bias"]
    np.testing.assert_allclose(layer(x), np.where(z > 0, z, 0.2 * z), atol=atol)
    # The second derivatives grow as the reflectors, of order one, get shorter.
    _, found = weight_gradients(layer, lambda y: ops.sum(y**2), x)
    along = {n: np.random.default_rng(1).normal(size=g.shape) for n, g in found.items()}
    step = EPS64 ** (1 / 3)

    def loss(sign):
        moved = {n: weights[n] + sign * step * along[n] for n in weights}
        z = x @ svd_matrix(moved, (features, units), margin, 0.8) + moved["bias"]
        return np.sum(np.where(z > 0, z, 0.2 * z) ** 2)

    total = sum(np.sum(found[name] * along[name]) for name in found)
    slope = (loss(1) - loss(-1)) / (2 * step)
    assert total == pytest.approx(slope, rel=1e-7, abs=1e4 * step**2)


@pytest.mark.parametrize(("features", "units"), [(1, 1), (6, 4), (1, 5), (40, 60)])
def test_svd_dense_starts_from_a_matrix_and_takes_one(features, units):
    """Theorem 4: every matrix, of any rank, by `min(m, n)` reflectors on a side."""
    random = np.random.default_rng(1)
    matrix = random.normal(size=(features, units))
    low_rank = random.normal(size=(features, 1)) * random.normal(size=units)
    layer = SVDDense(units, kernel_initializer=matrix, dtype="float64")
    layer.build((None, features))
    unit = 10 * max(features, units) * EPS64
    for expected in (matrix, low_rank):
        atol = unit * np.linalg.norm(expected, 2)
        np.testing.assert_allclose(layer.kernel_matrix(), expected, atol=atol)
        layer.set_kernel_matrix(low_rank)
    bounded, _ = svd_dense(units, features, spectral_margin=0.5)
    left, _, right = np.linalg.svd(matrix, full_matrices=False)
    matrix = left * np.linspace(0.6, 1.4, min(features, units)) @ right
    bounded.set_kernel_matrix(matrix)
    np.testing.assert_allclose(bounded.kernel_matrix(), matrix, atol=1000 * EPS64)


def test_svd_dense_starts_with_the_center_as_every_singular_value():
    for margin in (None, 0.1):
        layer = SVDDense(30, None, margin, 0.5, kernel_regularizer="l2")
        layer(np.zeros((2, 50)))
        kernel = layer.kernel_matrix()
        assert spectral_deviation(kernel, center=0.5) <= 50 * EPS32
        # The squares of the singular values are those of the entries; logits are 0.
        expected = 0 if margin else 0.01 * np.sum(ops.convert_to_numpy(kernel) ** 2)
        np.testing.assert_allclose(sum(layer.losses), expected, 1e-5)
