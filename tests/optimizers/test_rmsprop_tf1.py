import keras
import numpy as np
import pytest

from keras_ortho.optimizers import RMSpropTF1

if keras.backend.backend() != "tensorflow":
    pytest.skip("The original is TensorFlow's", allow_module_level=True)


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_agrees_with_tensorflow_1(momentum, centered):
    import tensorflow as tf

    given = {"momentum": momentum, "centered": centered}
    random = np.random.default_rng(0)
    start, gradients = random.normal(size=4), random.normal(size=(50, 4))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        w = tf.compat.v1.Variable(start, use_resource=True)
        g = tf.compat.v1.placeholder("float64", (4,))
        original = tf.compat.v1.train.RMSPropOptimizer(0.01, **given)
        step = original.apply_gradients([(g, w)])
        session.run(tf.compat.v1.global_variables_initializer())
        for gradient in gradients:
            session.run(step, {g: gradient})
        expected = session.run(w)
    variable = keras.Variable(start, dtype="float64")
    optimizer = RMSpropTF1(0.01, **given)
    for gradient in gradients:
        optimizer.apply([keras.ops.convert_to_tensor(gradient)], [variable])
    # Fifty steps, each with a few roundings of numbers of order one; Keras holds the
    # learning rate in float32.
    atol = 50 * 0.01 * np.finfo("float32").eps
    np.testing.assert_allclose(variable, expected, atol=atol)
