"""Our layers among those of Keras: the shapes that these see, and what they compute.

What a layer of Keras makes of its inputs depends on the shape it is told of them: a
time axis that is lost while a program is traced changes the numbers, or ends in an
error, where the same layers called eagerly are right.
"""

import keras
import numpy as np
import pytest
from keras import layers

from tests.cells.architectures import ARCHITECTURES

FEATURES = 4
# Steps, and the sizes of batches below it, at it and above it: of the first is one that
# takes the batch for the time right.
TIME, BATCHES = 10, (8, 10, 16)

pytestmark = pytest.mark.usefixtures("cut_in_two")


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="JAX traces whole shapes only"
)
@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
# One segment, whole segments with a rest, any number.
@pytest.mark.parametrize(("batch", "time"), [(None, 70), (3, TIME), (None, None)])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"return_sequences": False},
        {"go_backwards": True},
        {"recompute": 3},
        {"dropout": 0.1, "recurrent_dropout": 0.1},
        {"unroll": True},
        {"jit_compile": True},
    ],
    ids=str,
)
def test_a_program_is_told_the_shapes_that_lstm_tells(
    architecture, options, batch, time
):
    import tensorflow as tf

    options = {"return_sequences": True} | options
    jit_compile = options.pop("jit_compile", False)
    time = TIME if "unroll" in options else time  # Keras must know it.
    layer = architecture.layer(**architecture.arguments, **options, return_state=True)
    layer.build((batch, time, FEATURES))
    units = layer.cell.output_size
    output = (batch, time, units) if layer.return_sequences else (batch, units)
    expected = [output, (batch, units)]

    @tf.function(jit_compile=jit_compile, autograph=False)
    def run(x, mask):
        results = layer(x, mask=mask if time != 70 else None, training=True)
        assert [tuple(result.shape) for result in results] == expected

    run.get_concrete_function(
        tf.TensorSpec((batch, time, FEATURES), "float32"),
        tf.TensorSpec((batch, time), "bool"),
    )
    symbolic = layer(keras.KerasTensor((batch, time, FEATURES)))
    assert [tuple(result.shape) for result in symbolic] == expected
    told = layer.compute_output_shape((batch, time, FEATURES))
    assert [tuple(shape) for shape in told] == expected


def dense_at_each_step(h):
    return layers.TimeDistributed(layers.Dense(3))(h)


def around_four_axes(x, recurrent):
    x = layers.Reshape((2, TIME // 2, FEATURES))(x)
    h = layers.TimeDistributed(recurrent(return_sequences=True))(x)
    return layers.TimeDistributed(layers.TimeDistributed(layers.Dense(3)))(h)


def bidirectional(x, recurrent):
    layer = recurrent(return_sequences=True)
    return dense_at_each_step(layers.Bidirectional(layer)(x))


def encoder_and_decoder(x, recurrent):
    _, state = recurrent(return_sequences=True, return_state=True)(x)
    repeated = layers.RepeatVector(6)(state)
    h = recurrent(return_sequences=True)(repeated, initial_state=[state])
    return dense_at_each_step(h)


def through(*before, after=()):
    """Some layers before one that returns all its outputs, and after it."""

    def build(x, recurrent):
        for make in (*before, lambda: recurrent(return_sequences=True), *after):
            x = make()(x)
        return x if after else dense_at_each_step(x)

    return build


# From the inputs, of shape `(batch, 10, 4)`, and a function that makes recurrent layers
# to the outputs.
ARRANGEMENTS = {
    "time distributed after": through(),
    "time distributed around": around_four_axes,
    "bidirectional": bidirectional,
    "encoder and decoder": encoder_and_decoder,
    "masking": through(layers.Masking),
    "embedding": through(lambda: layers.Embedding(7, 3, mask_zero=True)),
    "flatten": through(after=[layers.Flatten, lambda: layers.Dense(3)]),
    "convolution": through(after=[lambda: layers.Conv1D(3, 3), layers.Flatten]),
    # The batch, too, is known while the program is traced, or the time is not.
    "fixed batch": through(),
    "unknown time": through(),
}
# For every architecture; `ScoRNN` has all.
ESSENTIAL = ("time distributed after", "encoder and decoder", "masking", "fixed batch")
# On JAX, which traces whole shapes, all are slow.
QUICK = [] if keras.backend.backend() == "jax" else ["time distributed after"]
CASES = [
    pytest.param(
        architecture,
        name,
        marks=[pytest.mark.slow] * (not in_full or name not in QUICK),
        id=f"{architecture} {name}",
    )
    for architecture in ARCHITECTURES
    for in_full in [str(architecture) == "ScoRNN"]
    for name in (ARRANGEMENTS if in_full else ESSENTIAL)
]


@pytest.fixture
def double():
    """Keras in float64."""
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_floatx("float32")
    keras.config.set_dtype_policy("float32")


@pytest.mark.backends
@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("architecture", "name"), CASES)
def test_arrangements(architecture, name):
    """A model with our layer equals it with the stock loop: called, used, and trained.

    What is compiled, with a layer, is held against what runs eagerly, with the stock
    loop around the layer's cell.
    """
    normal = keras.initializers.RandomNormal(stddev=0.5, seed=1)
    arguments = architecture.arguments | {"kernel_initializer": normal}

    def make_model(recurrent):
        time = None if name == "unknown time" else TIME
        shape, batch = (time, FEATURES), BATCHES[0] if name == "fixed batch" else None
        inputs = keras.Input(shape[: 1 if name == "embedding" else 2], batch)
        return keras.Model(inputs, ARRANGEMENTS[name](inputs, recurrent))

    model = make_model(lambda **kwargs: architecture.layer(**arguments, **kwargs))
    stock = make_model(
        lambda **kwargs: keras.layers.RNN(architecture.cell(**arguments), **kwargs)
    )
    stock.set_weights(model.get_weights())
    on_jax = keras.backend.backend() == "jax"  # Which compiles a loop at each call.
    model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=on_jax)
    stock.compile(keras.optimizers.SGD(0.1), "mse", run_eagerly=not on_jax)
    # Three updates through stacked recurrences of ten steps, whose outputs are of order
    # ten, leave 1e-13; what is computed from a wrong axis is off by 1e-3 or more.
    close = {"atol": 1e-9}
    for batch in BATCHES[:1] if name == "fixed batch" else BATCHES:
        random = np.random.default_rng(batch)
        x = random.normal(size=(batch, TIME, FEATURES))
        if name == "embedding":
            x = random.integers(1, 7, (batch, TIME))
        x[1::3, 6:] = x[2::3, :2] = 0
        expected = np.asarray(stock(x))
        np.testing.assert_allclose(model(x), expected, **close)
        outputs = model.predict(x, batch_size=batch, verbose=0)
        np.testing.assert_allclose(outputs, expected, **close)
        y = random.normal(size=expected.shape)
        for each in (model, stock):
            each.fit(x, y, batch_size=batch, verbose=0)
        for weight, other in zip(model.weights, stock.weights, strict=True):
            np.testing.assert_allclose(weight, other, **close, err_msg=weight.path)
