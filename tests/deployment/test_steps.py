"""A step model, fed with its own states, computes what the model of sequences does."""

import keras
import numpy as np
import pytest
from keras import layers, ops

from keras_ortho import (
    GORU,
    ORNN,
    OrthoDense,
    ScoRNN,
    ScoRNNCell,
    freeze,
    initial_states,
    step_model,
)
from keras_ortho.layers import CarriedState, TrainedInitialState
from keras_ortho.parametrizations import ScaledCayley
from tests.cells.architectures import ARCHITECTURES

pytestmark = pytest.mark.backends

X = np.random.default_rng(0).normal(size=(2, 6, 3)).astype("float32")
# Six steps, each with sums of less than 20 products of about 1.
ATOL = 6 * 20 * np.finfo("float32").eps


def model_of(*parts, shape=(None, 3), **kwargs):
    return keras.Sequential([keras.Input(shape, **kwargs), *parts])


def outputs(model, x):
    """What a model's step gives for each frame in turn."""
    step, states = step_model(model), initial_states(model, len(x))
    assert [tuple(i.shape[1:]) for i in step.inputs[1:]] == [
        s.shape[1:] for s in states
    ]
    found = []
    for time in range(x.shape[1]):
        y, *states = step.predict_on_batch([x[:, time], *states])
        found.append(y)
    return np.stack(found, axis=1)


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_every_architecture(architecture):
    layer = architecture.layer(**architecture.arguments, return_sequences=True)
    model = model_of(layer, layers.Dense(2), shape=(None, 4))  # Of two heads.
    x = np.random.default_rng(0).normal(size=(2, 6, 4)).astype("float32")
    for each in (model, freeze(model)):
        np.testing.assert_allclose(
            outputs(each, x), each.predict(x, verbose=0), atol=ATOL
        )


def residual():
    x = keras.Input((None, 3))
    y = layers.LayerNormalization()(ScoRNN(3, return_sequences=True)(x))
    inner = model_of(layers.Dense(3, activation="relu"), layers.BatchNormalization())
    y = inner(layers.Concatenate()([x + y, 2 * x])[..., :3])
    return keras.Model(x, layers.Add()([y, GORU(4, return_sequences=True)(y)[..., :3]]))


@pytest.mark.parametrize(
    "make",
    [
        residual,
        lambda: model_of(
            layers.LSTM(4, return_sequences=True),
            layers.RNN([ScoRNNCell(5), layers.LSTMCell(4)], return_sequences=True),
            layers.TimeDistributed(layers.Dense(2)),
        ),
        lambda: model_of(TrainedInitialState(ScoRNN(4, return_sequences=True))),
        lambda: model_of(
            CarriedState(ScoRNN(4, return_sequences=True, return_state=True)),
            batch_size=2,
        ),
    ],
)
def test_models_of_several_layers(make):
    model = make()
    expected = model(X)
    for layer in model.layers:
        if isinstance(layer, CarriedState):
            layer.reset_state()
    np.testing.assert_allclose(outputs(model, X), expected, atol=ATOL)


def called_alike():
    """Layers within a nested model have the names of some without; one that of `x`."""
    inner = model_of(layers.GRU(3, return_sequences=True), layers.Dense(3, name="proj"))
    y = layers.Dense(3, name="proj")(x := keras.Input((None, 3)))
    y = layers.Dense(3, name="x")(layers.GRU(3, return_sequences=True)(y))
    return keras.Model(x, layers.Dense(2, name="state_0")(inner(inner(y))))


@pytest.mark.parametrize(
    "make",
    [
        lambda: model_of(*(layers.LSTM(4, return_sequences=True) for _ in range(3))),
        lambda: freeze(model_of(*(ORNN(4, return_sequences=True) for _ in range(2)))),
        lambda: freeze(
            model_of(
                *(ScoRNN(4, activation="tanh", return_sequences=True) for _ in range(2))
            )
        ),
        called_alike,
    ],
)
def test_operations_that_are_called_alike(make, tmp_path):
    """As Keras calls the cells of its layers."""
    model = make()
    np.testing.assert_allclose(outputs(model, X), model(X), atol=ATOL)
    step = step_model(model)
    step.save(tmp_path / "step.keras")
    loaded = keras.saving.load_model(tmp_path / "step.keras")
    frame = [X[:, 0], *initial_states(model, 2)]
    for one, other in zip(loaded(frame), step(frame), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_last_output_is_that_of_the_sequence_so_far():
    model = model_of(ORNN(4, return_sequences=True), layers.GRU(5), layers.Dense(2))
    found = outputs(model, X)
    for time in range(X.shape[1]):
        expected = model.predict(X[:, : time + 1], verbose=0)
        np.testing.assert_allclose(found[:, time], expected, atol=ATOL)


def test_states_and_several_inputs_and_outputs():
    text, sound = (
        keras.Input((None,), dtype="int32", name="text"),
        keras.Input((None, 2)),
    )
    x = layers.Concatenate()([layers.Embedding(5, 3)(text), sound])
    y, state = ScoRNN(4, return_sequences=True, return_state=True)(x)
    model = keras.Model([text, sound], [y, state])
    step = step_model(model)
    given = [np.ones((2, 1), "int32"), X[:, :1, :2]]
    y, state = model(given)
    found = step([x[:, 0] for x in given] + initial_states(model, 2))
    assert len(found) == 3
    np.testing.assert_allclose(found[0], y[:, 0], atol=ATOL)
    np.testing.assert_allclose(found[1], state, atol=ATOL)
    np.testing.assert_array_equal(found[1], found[2])


def with_initial_state():
    x = keras.Input((None, 3))
    state = layers.Dense(4)(layers.GRU(4)(x))
    return keras.Model(x, ScoRNN(4, return_sequences=True)(x, initial_state=state))


def join():
    x = keras.Input((6, 3))
    return keras.Model(x, layers.Add()([layers.GRU(3)(x)[:, None], x]))


def with_input_without_time():
    x, constant = keras.Input((None, 3)), keras.Input((5,))
    y = layers.Reshape((1, 4))(layers.Dense(4)(constant))
    return keras.Model([x, constant], rnn()(x) + y)


class WeightedDense(layers.Dense):
    """A dense layer that does more, with what it is called on."""

    def call(self, x, training=None):
        return super().call(x) + ops.sum(x, axis=1, keepdims=True)


def rnn(**kwargs):
    return ScoRNN(4, return_sequences=True, name="rnn", **kwargs)


class Doubled(ScoRNN):
    """A layer with more than its cell's steps."""

    def call(self, sequences, initial_state=None, mask=None, training=False):
        return 2.0 * super().call(sequences, initial_state, mask, training)


def random_by_call():
    x = keras.Input((None, 3))
    return keras.Model(x, layers.GRU(4, dropout=0.5, name="rnn")(x, training=True))


def with_a_cell():
    x, state = keras.Input((3,), name="a"), keras.Input((4,), name="b")
    return keras.Model([x, state], ScoRNNCell(4)(x, [state])[0])


def inputs_named(*names):
    inputs = [keras.Input((None, 3), name=name) for name in names]
    return keras.Model(inputs, rnn()(layers.Subtract()(inputs)))


def test_inputs_of_a_nested_model_by_name():
    b, a = keras.Input((None, 3), name="b"), keras.Input((None, 3), name="a")
    inner = keras.Model([b, a], layers.Subtract()([b, a]))
    x = keras.Input((None, 3))
    model = keras.Model(x, rnn()(inner({"a": x, "b": 3 * x})))
    np.testing.assert_allclose(outputs(model, X), model(X), atol=ATOL)


@pytest.mark.parametrize(
    "between",
    [
        lambda x: layers.TimeDistributed(layers.Lambda(ops.log1p))(ops.relu(x)),
        lambda x: layers.Softmax()(ops.log(ops.absolute(x) + 1)) / ops.exp(x),
        lambda x: ops.matmul(x, ops.convert_to_tensor(X[0, :3])) + ops.ones((1, 1, 3)),
        lambda x: layers.Concatenate()([x, ops.mean(x, axis=-1, keepdims=True)]),
        lambda x: ops.concatenate([x[:, :, 1:], x[..., :2] ** 2], axis=-1),
        lambda x: layers.UnitNormalization()(layers.RMSNormalization()(x)),
        lambda x: OrthoDense(3, ScaledCayley())(
            layers.Dropout(0.5)(layers.GaussianNoise(1.0)(x))
        ),
    ],
)
def test_what_acts_on_each_frame(between):
    x = keras.Input((None, 3))
    model = keras.Model(x, rnn()(between(x)))
    np.testing.assert_allclose(outputs(model, X), model(X), atol=ATOL)


@pytest.mark.parametrize(
    "between",
    [
        lambda x: x - ops.mean(x, axis=1, keepdims=True),
        lambda x: x - ops.mean(x),
        lambda x: ops.flip(x, axis=1),
        lambda x: ops.softmax(x, axis=-2),
        lambda x: layers.UnitNormalization(axis=(1, 2))(x),
        lambda x: x[:, ::-1],
        lambda x: ops.expand_dims(x[0], 0),
        lambda x: ops.concatenate([x, x], axis=1),
        lambda x: layers.Lambda(ops.log1p, name="rnn_before")(x),
        lambda x: layers.Dense(3, name="of_its_own")(
            layers.Dropout(0.5)(x, training=True)
        ),
        lambda x: layers.BatchNormalization()(x, training=True),
        lambda x: layers.Conv1D(3, 2, padding="causal")(x),
        lambda x: WeightedDense(3)(x),
    ],
)
def test_what_may_mix_frames(between):
    x = keras.Input((6, 3))
    y = between(x)
    model = keras.Model(x, rnn()(y))
    words = "is not known to process each frame independently.*TimeDistributed|training"
    with pytest.raises(ValueError, match=f"`model` has no single step: .*(?:{words})"):
        step_model(model)


class Residual(keras.Model):
    """A functional model that does more than its graph says."""

    def call(self, x, training=None, mask=None):
        return x + super().call(x, training=training)


def around():
    x = keras.Input((None, 3))
    return Residual(x, rnn()(x))


def with_constant_state():
    x, state = keras.Input((None, 3)), np.ones((2, 4), "float32")
    return keras.Model(x, rnn()(x, initial_state=state))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: model_of(Doubled(4)), "overrides `call`"),
        (around, "overrides `call`"),
        (lambda: model_of(around()), "overrides `call`"),
        (with_constant_state, "is given an initial state"),
        (random_by_call, "training=True"),
        (lambda: inputs_named("other", "state_0"), "the name of a state"),
        (lambda: model_of(layers.Bidirectional(rnn(), name="rnn")), "from its end"),
        (lambda: model_of(rnn(go_backwards=True)), "from its end"),
        (
            lambda: model_of(layers.GRU(3), layers.RepeatVector(4), rnn()),
            "return_sequences=False",
        ),
        (lambda: model_of(layers.Masking(name="rnn"), layers.GRU(3)), "mask"),
        (with_initial_state, "is given an initial state"),
        (with_input_without_time, "does not take a single frame"),
        (
            lambda: model_of(
                layers.GRU(2, return_sequences=True), layers.Flatten(), shape=(6, 3)
            ),
            "each frame independently",
        ),
        (join, "combines a last output"),
        (lambda: keras.Sequential([ScoRNN(4)]), "Sequential or functional"),
        (with_a_cell, "is a cell, not"),
        (lambda: model_of(layers.Dense(2)), "no recurrent layer"),
        (
            lambda: keras.Sequential([keras.Input(()), layers.Rescaling(2.0)]),
            "second axis of each input",
        ),
    ],
)
def test_what_has_no_step(make, words):
    with pytest.raises(ValueError, match=f"{words}.*Received: "):
        step_model(make())


def test_batch_sizes_are_positive():
    with pytest.raises(ValueError, match=r"`batch_size`.*Received: "):
        initial_states(model_of(rnn()), 0)
