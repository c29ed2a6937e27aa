import keras
import numpy as np
import pytest

from keras_ortho.optimizers import RMSpropTF1

pytestmark = pytest.mark.backends


def by_hand(w, gradients, rate, rho=0.9, momentum=0.0, epsilon=1e-10, centered=False):
    """TensorFlow 1's rule, one step after the other, in float64."""
    v, m, mean = np.ones_like(w), np.zeros_like(w), np.zeros_like(w)
    for g in gradients:
        v = rho * v + (1 - rho) * g**2
        mean = rho * mean + (1 - rho) * g
        m = momentum * m + rate * g / np.sqrt(v - centered * mean**2 + epsilon)
        w = w - m
    return w


@pytest.mark.parametrize("momentum", [0.0, 0.5])
@pytest.mark.parametrize("centered", [False, True])
def test_against_the_rule(momentum, centered):
    random = np.random.default_rng(0)
    start, gradients = random.normal(size=4), random.normal(size=(200, 4))
    variable = keras.Variable(start, dtype="float64")
    optimizer = RMSpropTF1(0.01, momentum=momentum, centered=centered)
    optimizer.build([variable])
    for gradient in gradients:
        optimizer.apply([keras.ops.convert_to_tensor(gradient)], [variable])
    expected = by_hand(start, gradients, 0.01, momentum=momentum, centered=centered)
    # Two hundred steps, each with a few roundings of numbers of order one; Keras
    # holds the learning rate in float32.
    atol = 200 * 0.01 * np.finfo("float32").eps
    np.testing.assert_allclose(variable, expected, atol=atol)


def test_literal_first_step():
    """With the slot at 1 it is lr g / sqrt(0.9 + 0.1 g^2), not 3.16 lr."""
    for gradient, slot in [(1e-3, 1.0), (1e-3, 0.0)]:
        variable = keras.Variable([0.0], dtype="float64")
        optimizer = RMSpropTF1(1.0, initial_accumulator_value=slot)
        optimizer.build([variable])
        optimizer.apply([keras.ops.convert_to_tensor([gradient])], [variable])
        expected = gradient / np.sqrt(0.9 * slot + 0.1 * gradient**2 + 1e-10)
        assert float(variable.numpy()[0]) == pytest.approx(-expected, rel=1e-6)


def test_agrees_with_tensorflow_1():
    if keras.backend.backend() != "tensorflow":
        pytest.skip("The original is TensorFlow's")
    import tensorflow as tf

    random = np.random.default_rng(0)
    start, gradients = random.normal(size=4), random.normal(size=(50, 4))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        w = tf.compat.v1.Variable(start, use_resource=True)
        g = tf.compat.v1.placeholder("float64", (4,))
        step = tf.compat.v1.train.RMSPropOptimizer(0.01).apply_gradients([(g, w)])
        session.run(tf.compat.v1.global_variables_initializer())
        for gradient in gradients:
            session.run(step, {g: gradient})
        expected = session.run(w)
    variable = keras.Variable(start, dtype="float64")
    optimizer = RMSpropTF1(0.01)
    optimizer.build([variable])
    for gradient in gradients:
        optimizer.apply([keras.ops.convert_to_tensor(gradient)], [variable])
    atol = 50 * 0.01 * np.finfo("float32").eps
    np.testing.assert_allclose(variable, expected, atol=atol)


def test_config():
    optimizer = RMSpropTF1(0.1, rho=0.8, clipnorm=2.0, initial_accumulator_value=0.5)
    config = keras.optimizers.serialize(optimizer)
    assert config["registered_name"] == "keras_ortho>RMSpropTF1"
    again = keras.optimizers.deserialize(config)
    assert again.get_config() == optimizer.get_config()
    assert again.initial_accumulator_value == 0.5
    assert again.epsilon == 1e-10


def test_accumulator_must_not_be_negative():
    with pytest.raises(ValueError, match="Received: initial_accumulator_value=-1"):
        RMSpropTF1(initial_accumulator_value=-1)
    with pytest.raises(ValueError, match="Received: rho=2"):
        RMSpropTF1(rho=2)
    with pytest.raises(ValueError, match="Received: epsilon=-1"):
        RMSpropTF1(epsilon=-1)
