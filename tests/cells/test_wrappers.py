"""Our layers among those of Keras, in programs traced with and without known shapes.

A time axis that is lost while a program is traced changes what Keras's layers compute.
"""

import keras
import numpy as np
import pytest
from keras import layers

from tests.cells.architectures import ARCHITECTURES

FEATURES = 4
# Steps, and sizes of batches below it, at it and above it.
TIME, BATCHES = 10, (8, 10, 16)

pytestmark = pytest.mark.usefixtures("cut_in_two")


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="JAX traces whole shapes only"
)
@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
@pytest.mark.parametrize(
    ("options", "batch", "time"),
    [
        ({}, None, 70),  # A segment, and some steps more.
        ({"return_sequences": False}, 3, TIME),
        ({"go_backwards": True}, None, None),
        ({"recompute": 3}, None, None),
        ({"dropout": 0.1, "recurrent_dropout": 0.1}, None, 70),
        ({"unroll": True}, None, TIME),  # Keras must know the time.
        ({"jit_compile": True}, None, None),
    ],
    ids=str,
)
def test_a_program_is_told_the_shapes_that_lstm_tells(
    architecture, options, batch, time
):
    import tensorflow as tf

    options = {"return_sequences": True} | options
    jit_compile = options.pop("jit_compile", False)
    layer = architecture.layer(**architecture.arguments, **options, return_state=True)
    layer.build((batch, time, FEATURES))
    units = layer.cell.output_size
    output = (batch, time, units) if layer.return_sequences else (batch, units)
    expected = [output, (batch, units)]

    @tf.function(jit_compile=jit_compile, autograph=False)
    def run(x, mask):
        results = layer(x, mask=mask if time is None else None, training=True)
        assert [tuple(result.shape) for result in results] == expected

    run.get_concrete_function(
        tf.TensorSpec((batch, time, FEATURES), "float32"),
        tf.TensorSpec((batch, time), "bool"),
    )
    symbolic = layer(keras.KerasTensor((batch, time, FEATURES)))
    assert [tuple(result.shape) for result in symbolic] == expected
    told = layer.compute_output_shape((batch, time, FEATURES))
    assert [tuple(shape) for shape in told] == expected


def model_of(recurrent, batch, time):
    """An encoder of masked steps, a decoder from its state, and layers after both."""
    inputs = keras.Input((time, FEATURES), batch)
    sequences = {"return_sequences": True}
    encoded, state = recurrent(**sequences, return_state=True)(layers.Masking()(inputs))
    repeated = layers.RepeatVector(6)(state)
    decoded = recurrent(**sequences)(repeated, initial_state=[state])
    dense = layers.TimeDistributed(layers.Dense(3))(encoded)
    return keras.Model(inputs, [dense, layers.Flatten()(layers.Conv1D(3, 3)(decoded))])


@pytest.mark.backends
@pytest.mark.slow_on_jax
@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    ("batch", "time"),
    [
        (None, TIME),
        pytest.param(BATCHES[0], TIME, marks=pytest.mark.slow),
        pytest.param(None, None, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_arrangements(architecture, batch, time):
    """A model with our layer equals it with the stock loop: called, used, and trained.

    What is compiled, with a layer, is held against what runs eagerly, with the stock
    loop around the layer's cell.
    """
    normal = keras.initializers.RandomNormal(stddev=0.5, seed=1)
    arguments = architecture.arguments | {"kernel_initializer": normal}
    model, stock = (
        model_of(recurrent, batch, time)
        for recurrent in (
            lambda **kwargs: architecture.layer(**arguments, **kwargs),
            lambda **kwargs: layers.RNN(architecture.cell(**arguments), **kwargs),
        )
    )
    stock.set_weights(model.get_weights())
    on_jax = keras.backend.backend() == "jax"  # Which compiles a loop at each call.
    model.compile(keras.optimizers.SGD(0.1), ["mse", "mse"], jit_compile=on_jax)
    stock.compile(keras.optimizers.SGD(0.1), ["mse", "mse"], run_eagerly=not on_jax)
    # Three updates through stacked recurrences of ten steps, whose outputs are of order
    # ten, leave 1e-13; what is computed from a wrong axis is off by 1e-3 or more.
    close = {"atol": 1e-9}
    for size in BATCHES if batch is None else [batch]:
        random = np.random.default_rng(size)
        x = random.normal(size=(size, TIME, FEATURES))
        x[1::3, 6:] = x[2::3, 4] = 0
        expected = list(map(np.asarray, stock(x)))
        for found in (model(x), model.predict(x, batch_size=size, verbose=0)):
            for each, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(each, other, **close)
        y = [random.normal(size=each.shape) for each in expected]
        for each in (model, stock):
            each.fit(x, y, batch_size=size, verbose=0)
        for weight, other in zip(model.weights, stock.weights, strict=True):
            np.testing.assert_allclose(weight, other, **close, err_msg=weight.path)
