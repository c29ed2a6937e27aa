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

X = np.random.default_rng(0).normal(size=(2, 6, 4)).astype("float32")
# Six steps, each with sums of less than 20 products of about 1.
ATOL = 6 * 20 * np.finfo("float32").eps


def model_of(*parts, **kwargs):
    return keras.Sequential([keras.Input((None, 4), **kwargs), *parts])


def rnn(kind=ScoRNN, **kwargs):
    return kind(4, return_sequences=True, **kwargs)


def made_of(function, length=None, kind=keras.Model):
    x = keras.Input((length, 4))
    return kind(x, function(x))


def between(function):
    return lambda: made_of(lambda x: rnn()(function(x)))


def outputs(model, x=X):
    """What a model's step gives for each frame in turn."""
    step, states = step_model(model), initial_states(model, len(x))
    assert [i.shape[1:] for i in step.inputs[1:]] == [s.shape[1:] for s in states]
    found = []
    for time in range(x.shape[1]):
        y, *states = step.predict_on_batch([x[:, time], *states])
        found.append(y)
    return np.stack(found, axis=1)


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_every_architecture(architecture):
    layer = architecture.layer(**architecture.arguments, return_sequences=True)
    model = model_of(layer, layers.Dense(2))
    for each in (model, freeze(model)):
        expected = each.predict(X, verbose=0)
        np.testing.assert_allclose(outputs(each), expected, atol=ATOL)


def residual(x):
    y = layers.LayerNormalization()(rnn()(x))
    inner = model_of(layers.Dense(4, activation="relu"), layers.BatchNormalization())
    y = inner(layers.Concatenate()([x + y, 2 * x])[..., :4])
    return layers.Add()([y, rnn(GORU)(y)])


def called_alike(x):
    """Layers within a nested model have the names of some without; one that of `x`."""
    inner = model_of(rnn(layers.GRU), layers.Dense(4, name="proj"))
    y = rnn(layers.GRU)(layers.Dense(4, name="proj")(x))
    y = inner(inner(layers.Dense(4, name="x")(y)))
    doubled = made_of(lambda y: layers.Add(name="sum")([y, y]))
    return doubled(layers.Add(name="sum")([x, y]))


@pytest.mark.parametrize(
    "make",
    [
        lambda: made_of(residual),
        lambda: made_of(called_alike),
        lambda: model_of(
            *(rnn(layers.LSTM) for _ in range(3)),
            layers.RNN([ScoRNNCell(5), layers.LSTMCell(4)], return_sequences=True),
            layers.TimeDistributed(layers.Dense(2)),
        ),
        lambda: freeze(model_of(*(rnn(activation="tanh") for _ in range(2)))),
        lambda: model_of(TrainedInitialState(rnn())),
        lambda: model_of(CarriedState(rnn(return_state=True)), batch_size=2),
        between(lambda x: layers.TimeDistributed(layers.ReLU())(x - 1)),
        between(lambda x: layers.Softmax()(ops.log(ops.absolute(x) + 1)) / ops.exp(x)),
        between(lambda x: ops.concatenate([x[:, :, 1:], x[..., :2] ** 2], axis=-1)),
        between(lambda x: OrthoDense(4, ScaledCayley())(layers.Dropout(0.5)(x))),
    ],
)
def test_models_of_several_layers(make, tmp_path):
    model = make()
    expected = model(X)
    np.testing.assert_allclose(outputs(model), expected, atol=ATOL)
    step = step_model(model)
    step.save(tmp_path / "step.keras")
    loaded = keras.saving.load_model(tmp_path / "step.keras")
    frame = [X[:, 0], *initial_states(model, 2)]
    for one, other in zip(loaded(frame), step(frame), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_last_output_is_that_of_the_sequence_so_far():
    model = model_of(rnn(ORNN), layers.GRU(5), layers.Dense(2))
    found = outputs(model)
    for time in range(X.shape[1]):
        expected = model.predict(X[:, : time + 1], verbose=0)
        np.testing.assert_allclose(found[:, time], expected, atol=ATOL)


def test_several_inputs_and_outputs():
    text, sound = keras.Input((None,), dtype="int32"), keras.Input((None, 4))
    x = layers.Embedding(5, 3)(text)
    x = layers.Concatenate()([x, ops.one_hot(text, 5), sound])
    model = keras.Model([text, sound], rnn(return_state=True)(x))
    given = [np.ones((2, 1), "int32"), X[:, :1]]
    y, state = model(given)
    found = step_model(model)([x[:, 0] for x in given] + initial_states(model, 2))
    for one, other in zip(found, (y[:, 0], state, state), strict=True):
        np.testing.assert_allclose(one, other, atol=ATOL)


class WeightedDense(layers.Dense):
    def call(self, x, training=None):
        return super().call(x) + ops.sum(x, axis=1, keepdims=True)


class Doubled(ScoRNN):
    def call(self, sequences, initial_state=None, **kwargs):
        return 2.0 * super().call(sequences, initial_state, **kwargs)


class Residual(keras.Model):
    def call(self, x, **kwargs):
        return x + super().call(x, **kwargs)


repeated = layers.RepeatVector(4)
MIXED = "is not known to process each frame independently"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (between(lambda x: x - ops.mean(x, axis=1, keepdims=True)), MIXED),
        (between(lambda x: x - ops.mean(x)), MIXED),
        (between(lambda x: x[:, ::-1]), MIXED),
        (between(lambda x: x[..., ::-1, :]), MIXED),
        (between(layers.Masking()), MIXED),
        (between(layers.Bidirectional(rnn())), MIXED),
        (between(WeightedDense(4)), MIXED),
        (lambda: model_of(Doubled(4)), "overrides `call`"),
        (lambda: model_of(made_of(rnn(), kind=Residual)), "overrides `call`"),
        (lambda: made_of(lambda x: rnn()(x, initial_state=X[:, 0])), "initial state"),
        (lambda: made_of(lambda x: layers.GRU(4)(x, training=True)), "training=True"),
        (lambda: model_of(rnn(go_backwards=True)), "from its end"),
        (lambda: model_of(layers.GRU(3), repeated, rnn()), "return_sequences=False"),
        (lambda: made_of(lambda x: layers.GRU(4)(x)[:, None] + x, 6), "a last output"),
        (lambda: keras.Sequential([ScoRNN(4)]), "Sequential or functional"),
        (lambda: model_of(layers.Dense(2)), "have a recurrent layer"),
    ],
)
def test_what_has_no_step(make, words):
    with pytest.raises(ValueError, match=f"{words}.*Received: "):
        step_model(make())
