import numpy as np
import pytest
from keras import ops

from keras_ortho import SVDDense
from keras_ortho.activations import LeakyReLU
from keras_ortho.parametrizations import spectral_deviation
from tests import reference
from tests.gradients import weight_gradients

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
    return reference.svd(left, right, values, *shape)


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


@pytest.mark.parametrize(("features", "units"), [(1, 1), (6, 4), (4, 6), (5, 5)])
def test_starts_from_a_matrix_and_takes_one(features, units):
    random = np.random.default_rng(1)
    array = random.normal(size=(features, units))
    layer = built(units, features, kernel_initializer=array, dtype="float64")
    np.testing.assert_allclose(layer.kernel_matrix(), array, atol=1000 * EPS64)
    matrix = random.normal(size=(features, units))
    layer.set_kernel_matrix(matrix)
    np.testing.assert_allclose(layer.kernel_matrix(), matrix, atol=1000 * EPS64)
    bounded = built(units, features, spectral_margin=0.5, dtype="float64")
    left, _, right = np.linalg.svd(matrix, full_matrices=False)
    matrix = left * np.linspace(0.6, 1.4, min(features, units)) @ right
    bounded.set_kernel_matrix(matrix)
    np.testing.assert_allclose(bounded.kernel_matrix(), matrix, atol=1000 * EPS64)


@pytest.mark.slow_on_jax
def test_regularizers():
    given = dict.fromkeys(("kernel_regularizer", "bias_regularizer"), "l2")
    layer = built(4, 3, **given, bias_initializer="ones")
    layer(np.zeros((2, 3)))
    kernel = ops.convert_to_numpy(layer.kernel_matrix())
    # The squares of the singular values are those of the entries.
    expected = [0.01 * np.sum(kernel**2), 0.01 * 4]
    np.testing.assert_allclose(sorted(map(float, layer.losses)), sorted(expected), 1e-5)
