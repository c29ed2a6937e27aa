"""`OrthoDense`: part of a square matrix of any parametrization."""

import keras
import numpy as np
import pytest
from keras import ops
from keras.src import testing

from keras_ortho import OrthoDense
from keras_ortho import parametrizations as sets
from keras_ortho.optimizers import group_of
from tests.saving import reloaded

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


def test_trains_and_saves(tmp_path):
    keras.utils.set_random_seed(0)
    layer = OrthoDense(3, sets.SVD(2, 0.25), kernel_regularizer="l2")
    model = keras.Sequential([keras.Input((5,)), layer])
    model.compile("sgd", "mse")
    x = np.random.default_rng(0).normal(size=(16, 5)).astype("float32")
    before = ops.convert_to_numpy(layer.kernel_matrix())
    model.fit(x, x[:, :3], epochs=2, verbose=0)
    assert np.abs(ops.convert_to_numpy(layer.kernel_matrix()) - before).max() > 1e-4
    assert {group_of(w) for w in layer.weights[:-1]} == {"recurrent"}
    assert group_of(layer.bias) == "others"
    again = reloaded(model, tmp_path, x)
    assert again.layers[0].get_config() == layer.get_config()


class OrthoDenseTest(testing.TestCase):
    def test_keras_layer_checks(self):
        self.run_layer_test(
            OrthoDense,
            init_kwargs={"units": 3, "parametrization": sets.Antisymmetric(0.5)},
            input_shape=(2, 5),
            expected_output_shape=(2, 3),
            expected_num_trainable_weights=2,
            expected_num_non_trainable_weights=0,
            supports_masking=True,
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parametrization": "cayley"}, "`parametrization` must be"),
        ({"parametrization": sets.ScaledCayleyUnitary()}, "must make real matrices"),
        (
            {
                "parametrization": sets.ScaledCayley(),
                "kernel_initializer": "normal_reflectors",
            },
            "`kernel_initializer` must return skew entries",
        ),
        ({"parametrization": sets.ScaledCayley(), "units": 0}, "`units` must be"),
    ],
)
def test_arguments(arguments, message):
    with pytest.raises(ValueError, match=f"{message}.*Received"):
        OrthoDense(**{"units": 3, **arguments})


def test_orders_that_there_are_not():
    layer = OrthoDense(3, sets.Householder(6))
    with pytest.raises(ValueError, match="`reflections`.*Received"):
        layer.build((None, 5))
    with pytest.raises(ValueError, match=r"`OrthoDense` must be known. Received"):
        OrthoDense(3, sets.Householder()).build((None, None))


def test_an_order_that_the_heads_do_not_divide():
    layer = OrthoDense(10, sets.Heads(sets.ScaledCayley(), 3), use_bias=False)
    with pytest.raises(ValueError, match="heads.*Received"):
        layer.build((None, 4))
    layer = OrthoDense(4, sets.GivensOrthogonal())
    with pytest.raises(ValueError, match="order 6, the larger of 6 inputs and 4 units"):
        layer.build((None, 6))
