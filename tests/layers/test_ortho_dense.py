"""`OrthoDense`: part of a square matrix of any parametrization."""

import numpy as np
import pytest
from keras import ops

from keras_ortho import OrthoDense
from keras_ortho import parametrizations as sets

pytestmark = pytest.mark.backends

EPS32 = np.finfo("float32").eps


@pytest.mark.parametrize(("features", "units"), [(5, 5), (7, 3), (3, 7)])
def test_is_its_definition(features, units):
    x = np.random.default_rng(0).normal(size=(4, 2, features))
    layer = OrthoDense(units, sets.ScaledCayley(1), "tanh", dtype="float64")
    found = layer(x)
    kernel = ops.convert_to_numpy(layer.kernel_matrix())
    layer.bias.assign(np.arange(units))
    assert kernel.shape == (features, units)
    small = kernel.T @ kernel if units < features else kernel @ kernel.T
    np.testing.assert_allclose(small, np.eye(len(small)), atol=1e-13)
    np.testing.assert_allclose(found, np.tanh(x @ kernel), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(
        layer(x), np.tanh(x @ kernel + np.arange(units)), rtol=1e-13, atol=1e-13
    )


@pytest.mark.parametrize(("features", "units"), [(7, 3), (3, 7)])
def test_starts_from_a_matrix_and_takes_one(features, units):
    square = sets.Householder().sample(7, seed=0)
    layer = OrthoDense(units, sets.Householder(), kernel_initializer=square)
    layer.build((None, features))
    np.testing.assert_allclose(
        layer.kernel_matrix(), square[:features, :units], atol=100 * EPS32
    )
    layer.set_square_matrix(square.T)
    np.testing.assert_allclose(
        layer.kernel_matrix(), square.T[:features, :units], atol=100 * EPS32
    )
