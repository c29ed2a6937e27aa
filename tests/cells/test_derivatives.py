"""More than one gradient: several of one pass, Jacobians, second derivatives."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import EURNN, GORU, ScoRNN, ScuRNN

BACKEND = keras.backend.backend()
EPS = np.finfo("float64").eps
X = np.random.default_rng(0).normal(size=(2, 3, 2))


@pytest.mark.slow
@pytest.mark.skipif(BACKEND != "tensorflow", reason="its tapes")
@pytest.mark.parametrize(
    ("cls", "return_sequences"), [(ScoRNN, False), (ScuRNN, True), (GORU, True)]
)
def test_of_one_pass_there_may_be_several(cls, return_sequences):
    import tensorflow as tf

    layer = cls(2, return_sequences=return_sequences, dtype="float64")
    layer.build(X.shape)
    kernel = layer.cell.kernel
    with tf.GradientTape(persistent=True) as tape:
        y = layer(X, training=True)
        losses = [tf.reduce_sum(y), tf.reduce_sum(y**2)]
    ones, squares = (tape.gradient(loss, kernel) for loss in losses)
    jacobian = tape.jacobian(y, kernel)
    axes = list(range(len(y.shape)))
    # Sums of some tens of numbers of size 1.
    atol = 1000 * EPS
    total = tf.reduce_sum(jacobian, axis=axes)
    np.testing.assert_allclose(total, ones, atol=atol)
    total = tf.tensordot(2 * y, jacobian, axes=[axes, axes])
    np.testing.assert_allclose(total, squares, atol=atol)


@pytest.mark.skipif(BACKEND != "jax", reason="TensorFlow has none in training")
@pytest.mark.parametrize("cls", [ScuRNN, EURNN])
def test_second_derivatives_where_units_are_zero(cls):
    import jax

    bias = keras.initializers.Constant(-0.5)
    layer = cls(4, bias_initializer=bias, dtype="float64")
    stock = keras.layers.RNN(layer.cell, dtype="float64")

    def penalty(apply):
        def squares(x):
            return ops.sum(apply(x) ** 2)

        return jax.grad(lambda x: ops.sum(jax.grad(squares)(x) ** 2))(X)

    states = layer(X)
    assert np.any(np.asarray(states) == 0)
    found = penalty(lambda x: layer(x, training=True))
    expected = np.asarray(penalty(stock))
    np.testing.assert_allclose(found, expected, atol=1e4 * EPS * np.abs(expected).max())
