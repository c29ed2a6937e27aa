import keras
import numpy as np
import pytest

from keras_ortho.optimizers import RMSpropTF1

pytestmark = pytest.mark.backends


def by_hand(w, gradients, rate, momentum, centered, start, rho=0.9, epsilon=1e-10):
    """TensorFlow 1's rule, one step after the other, in float64."""
    v, m, mean = np.full_like(w, start), np.zeros_like(w), np.zeros_like(w)
    for g in gradients:
        v = rho * v + (1 - rho) * g**2
        mean = rho * mean + (1 - rho) * g
        m = momentum * m + rate * g / np.sqrt(v - centered * mean**2 + epsilon)
        w = w - m
    return w


def trained(start, gradients, **kwargs):
    variable = keras.Variable(start, dtype="float64")
    optimizer = RMSpropTF1(0.01, **kwargs)
    optimizer.build([variable])
    for gradient in gradients:
        optimizer.apply([keras.ops.convert_to_tensor(gradient)], [variable])
    return variable


@pytest.mark.parametrize(
    ("momentum", "centered", "initial"),
    [(0.0, False, 1.0), (0.5, True, 0.5)],
)
def test_against_the_rule(momentum, centered, initial):
    random = np.random.default_rng(0)
    start, gradients = random.normal(size=4), random.normal(size=(200, 4))
    given = {"momentum": momentum, "centered": centered}
    expected = by_hand(start, gradients, 0.01, **given, start=initial)
    variable = trained(start, gradients, **given, initial_accumulator_value=initial)
    # Two hundred steps, each with a few roundings of numbers of order one; Keras
    # holds the learning rate in float32.
    atol = 200 * 0.01 * np.finfo("float32").eps
    np.testing.assert_allclose(variable, expected, atol=atol)


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
    variable = trained(start, gradients)
    atol = 50 * 0.01 * np.finfo("float32").eps
    np.testing.assert_allclose(variable, expected, atol=atol)
