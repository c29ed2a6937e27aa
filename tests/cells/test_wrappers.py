"""Our layers among those of Keras: the shapes that these see, and what they compute.

What a layer of Keras makes of its inputs depends on the shape it is told of them: a
time axis that is lost while a program is traced changes the numbers, or ends in an
error, where the same layers called eagerly are right.
"""

import itertools

import keras
import numpy as np
import pytest

from tests.cells.architectures import ARCHITECTURES

FEATURES = 4

pytestmark = pytest.mark.usefixtures("cut_in_two")
for_each = pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
on_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="JAX traces whole shapes only"
)


def traced_shapes(layer, batch, time, *, masked=False, jit_compile=False):
    """The static shapes of the output and the state, as the next layer sees them."""
    import tensorflow as tf

    shapes = []

    @tf.function(jit_compile=jit_compile, autograph=False)
    def run(x, mask):
        results = layer(x, mask=mask if masked else None, training=True)
        shapes.extend(tuple(result.shape) for result in results)

    run.get_concrete_function(
        tf.TensorSpec((batch, time, FEATURES), "float32"),
        tf.TensorSpec((batch, time), "bool"),
    )
    return shapes


def check_shapes(layer, units, batch, time, **kwargs):
    layer.build((batch, time, FEATURES))
    output = (batch, time, units) if layer.return_sequences else (batch, units)
    expected = [output, (batch, units)]
    assert traced_shapes(layer, batch, time, **kwargs) == expected
    symbolic = keras.KerasTensor((batch, time, FEATURES))
    assert [tuple(result.shape) for result in layer(symbolic)] == expected
    assert [tuple(s) for s in layer.compute_output_shape(symbolic.shape)] == expected


BATCH_SIZES = (3, None)
# One segment, and whole segments with a rest.
LENGTHS = (10, 70, None)


def told_apart(return_sequences, batch, time, masked):
    """Whether it is a case that `make test` has: each shape, each option."""
    plain = return_sequences and not masked
    return plain or (batch, time) in ((3, 70), (None, None))


@on_tensorflow
@for_each
@pytest.mark.parametrize(
    ("return_sequences", "batch", "time", "masked"),
    [
        pytest.param(*case, marks=[] if told_apart(*case) else [pytest.mark.slow])
        for case in itertools.product(
            (True, False), BATCH_SIZES, LENGTHS, (False, True)
        )
    ],
)
def test_a_program_is_told_the_shapes_that_lstm_tells(
    architecture, return_sequences, batch, time, masked
):
    kwargs = {"return_sequences": return_sequences, "return_state": True}
    layer = architecture.layer(**architecture.arguments, **kwargs)
    units = layer.cell.output_size
    check_shapes(layer, units, batch, time, masked=masked)


@on_tensorflow
@for_each
@pytest.mark.parametrize(
    "options",
    [
        {"go_backwards": True},
        {"recompute": True},
        {"recompute": 3},
        {"dropout": 0.1, "recurrent_dropout": 0.1},
        {"unroll": True},
        {"jit_compile": True},
    ],
    ids=str,
)
def test_a_program_is_told_the_shapes_whatever_the_options(architecture, options):
    options = dict(options)
    jit_compile = options.pop("jit_compile", False)
    for batch, time in [(None, 10), (3, 10), (None, None)]:
        if time is None and options.get("unroll"):
            continue
        layer = architecture.layer(
            **architecture.arguments,
            **options,
            return_sequences=True,
            return_state=True,
        )
        units = layer.cell.output_size
        check_shapes(layer, units, batch, time, masked=True, jit_compile=jit_compile)


# Steps, and the sizes of batches below it, at it and above it: of the first is one that
# takes the batch for the time right.
TIME = 10
BATCHES = (8, TIME, 16)
VOCABULARY = 7
# In float64 three updates through stacked recurrences of ten steps, whose outputs are
# of order ten, leave 1e-13; what is computed from a wrong axis is off by 1e-3 or more.
ATOL = 1e-9

layers = keras.layers


def dense_at_each_step(h):
    return layers.TimeDistributed(layers.Dense(3))(h)


def around_four_axes(x, recurrent):
    x = layers.Reshape((2, TIME // 2, FEATURES))(x)
    h = layers.TimeDistributed(recurrent(return_sequences=True))(x)
    return layers.TimeDistributed(layers.TimeDistributed(layers.Dense(3)))(h)


def bidirectional(merge_mode):
    def build(x, recurrent):
        both = layers.Bidirectional(
            recurrent(return_sequences=True), merge_mode=merge_mode
        )
        h = both(x)
        return dense_at_each_step(layers.Concatenate()(h) if merge_mode is None else h)

    return build


def encoder_and_decoder(x, recurrent):
    _, state = recurrent(return_sequences=True, return_state=True)(x)
    repeated = layers.RepeatVector(6)(state)
    h = recurrent(return_sequences=True)(repeated, initial_state=[state])
    return dense_at_each_step(h)


def nested(x, recurrent):
    inner = keras.Input((TIME, FEATURES))
    inner = keras.Model(inner, recurrent(return_sequences=True)(inner))
    return dense_at_each_step(recurrent(return_sequences=True)(inner(x)))


class Subclassed(keras.Model):
    """Reads the shape of what a layer returns, as the user of an LSTM may."""

    def __init__(self, recurrent):
        super().__init__()
        self.recurrent = recurrent
        self.dense = keras.layers.Dense(3)

    def call(self, x):
        h = self.recurrent(x)
        return self.dense(keras.ops.reshape(h, (-1, h.shape[1] * h.shape[2])))


def attention(x, recurrent):
    h = recurrent(return_sequences=True)(x)
    h = layers.MultiHeadAttention(2, 3)(h, h)
    return layers.Attention()([h, recurrent(return_sequences=True)(h)])


def after(*following):
    """Some layers after a recurrent layer that returns all its outputs."""

    def build(x, recurrent):
        h = recurrent(return_sequences=True)(x)
        for layer in following:
            h = layer()(h)
        return h

    return build


def dense():
    return layers.Dense(3)


# From the inputs, of shape `(batch, 10, 4)`, and a function that makes recurrent layers
# to the outputs.
ARRANGEMENTS = {
    "time distributed after": lambda x, r: dense_at_each_step(
        r(return_sequences=True)(x)
    ),
    "time distributed before": lambda x, r: r()(dense_at_each_step(x)),
    "time distributed around": around_four_axes,
    "images": lambda x, r: dense_at_each_step(
        r(return_sequences=True)(
            layers.TimeDistributed(layers.Flatten())(
                layers.TimeDistributed(layers.Conv2D(2, 2))(
                    layers.Reshape((TIME, 2, 2, 1))(x)
                )
            )
        )
    ),
    **{f"bidirectional {m}": bidirectional(m) for m in ("concat", "sum", "mul", "ave")},
    "bidirectional none": bidirectional(None),
    "stacked": lambda x, r: dense_at_each_step(
        r(return_sequences=True)(r(return_sequences=True, go_backwards=True)(x))
    ),
    "encoder and decoder": encoder_and_decoder,
    "attention": attention,
    "masking": lambda x, r: dense_at_each_step(
        r(return_sequences=True)(layers.Masking()(x))
    ),
    "embedding": lambda x, r: dense_at_each_step(
        r(return_sequences=True)(layers.Embedding(VOCABULARY, 3, mask_zero=True)(x))
    ),
    "mean under a mask": lambda x, r: layers.GlobalAveragePooling1D()(
        r(return_sequences=True)(layers.Masking()(x))
    ),
    "nested": nested,
    "subclassed": lambda x, r: Subclassed(r(return_sequences=True))(x),
    "flatten": after(layers.Flatten, dense),
    "reshape": after(lambda: layers.Reshape((-1,)), dense),
    "permute": after(lambda: layers.Permute((2, 1)), dense),
    "pooling": after(lambda: layers.MaxPooling1D(2), layers.GlobalMaxPooling1D),
    "convolution": after(lambda: layers.Conv1D(3, 3), layers.Flatten),
    "normalization": after(layers.LayerNormalization, layers.BatchNormalization, dense),
}
# Of these the batch, too, is known while the program is traced, or the time is not.
SHAPES = {"fixed batch": (BATCHES[0], TIME), "unknown time": (None, None)}


class OwnStep(keras.Model):
    """A training step as users write it."""

    def train_step(self, *args):
        if keras.backend.backend() == "jax":
            return self._jax_step(*args)
        import tensorflow as tf

        x, y = args[0]
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply(gradients, self.trainable_weights)
        return {"loss": loss}

    def _jax_step(self, state, data):
        import jax

        trainable, fixed, optimizer, metrics = state
        x, y = data

        def loss(trainable, fixed):
            outputs, fixed = self.stateless_call(trainable, fixed, x, training=True)
            return self.compute_loss(y=y, y_pred=outputs), fixed

        (value, fixed), gradients = jax.value_and_grad(loss, has_aux=True)(
            trainable, fixed
        )
        trainable, optimizer = self.optimizer.stateless_apply(
            optimizer, gradients, trainable
        )
        return {"loss": value}, (trainable, fixed, optimizer, metrics)


def make_model(name, recurrent):
    batch, time = SHAPES.get(name, (None, TIME))
    if name == "embedding":
        inputs = keras.Input((time,), dtype="int32")
    else:
        inputs = keras.Input((time, FEATURES), batch_size=batch)
    build = ARRANGEMENTS.get(name, ARRANGEMENTS["time distributed after"])
    return (OwnStep if name == "own step" else keras.Model)(
        inputs, build(inputs, recurrent)
    )


def make_data(name, batch):
    random = np.random.default_rng(batch)
    x = random.normal(size=(batch, TIME, FEATURES))
    if name == "embedding":
        x = random.integers(1, VOCABULARY, (batch, TIME))
    if name in ("masking", "mean under a mask", "embedding"):
        x[1::3, 6:] = x[2::3, :2] = 0
    return x


# For every architecture, and compiled by XLA for those that have all the others: one
# has the plain step, one two matrices, one gates.
ESSENTIAL = [
    "time distributed after",
    "bidirectional none",
    "encoder and decoder",
    "masking",
    "fixed batch",
]
IN_ALL = ("ScoRNN", "ENRNN", "GORU")
# That of scoRNN which takes seconds; on JAX, which traces whole shapes, all are slow.
QUICK = [] if keras.backend.backend() == "jax" else ["time distributed after"]


def cases():
    for architecture in ARCHITECTURES:
        every = str(architecture) in IN_ALL
        names = [*ARRANGEMENTS, *SHAPES, "own step", "step weights"]
        quick = QUICK if str(architecture) == "ScoRNN" else []
        for name in names if every else ESSENTIAL:
            for xla in (False, True) if every and name in ESSENTIAL else (False,):
                marks = () if name in quick and not xla else (pytest.mark.slow,)
                label = f"{architecture} {name}" + (" xla" if xla else "")
                yield pytest.param(architecture, name, xla, marks=marks, id=label)


@pytest.fixture
def double():
    """Keras in float64."""
    before = keras.config.floatx(), keras.config.dtype_policy()
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_floatx(before[0])
    keras.config.set_dtype_policy(before[1])


@pytest.mark.backends
@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("architecture", "name", "jit_compile"), list(cases()))
def test_arrangements(architecture, name, jit_compile):
    """A model with our layer equals it with the stock loop: called, used, and trained.

    What is compiled, with a layer, is held against what runs eagerly, with the stock
    loop around the layer's cell.
    """
    arguments = {
        **architecture.arguments,
        "kernel_initializer": keras.initializers.RandomNormal(stddev=0.5, seed=1),
        "bias_initializer": keras.initializers.RandomNormal(stddev=0.5, seed=2),
    }
    model = make_model(name, lambda **kwargs: architecture.layer(**arguments, **kwargs))
    stock = make_model(
        name,
        lambda **kwargs: keras.layers.RNN(architecture.cell(**arguments), **kwargs),
    )
    stock.set_weights(model.get_weights())
    on_jax = keras.backend.backend() == "jax"  # Which compiles a loop at each call.
    model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=jit_compile or on_jax)
    stock.compile(keras.optimizers.SGD(0.1), "mse", run_eagerly=not on_jax)
    for batch in BATCHES[:1] if name == "fixed batch" else BATCHES:
        x = make_data(name, batch)
        expected = np.asarray(stock(x))
        np.testing.assert_allclose(model(x), expected, atol=ATOL)
        outputs = model.predict(x, batch_size=batch, verbose=0)
        np.testing.assert_allclose(outputs, expected, atol=ATOL)
        y = np.random.default_rng(0).normal(size=expected.shape)
        given = {}
        if name == "step weights":
            given["sample_weight"] = np.random.default_rng(1).uniform(
                size=(batch, TIME)
            )
        for each in (model, stock):
            each.fit(x, y, batch_size=batch, verbose=0, **given)
        for weight, other in zip(model.weights, stock.weights, strict=True):
            np.testing.assert_allclose(weight, other, atol=ATOL, err_msg=weight.path)
