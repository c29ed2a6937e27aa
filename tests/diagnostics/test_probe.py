"""Any model with a recurrent layer can be observed, and stays as it is."""

import keras
import numpy as np
import pytest
from keras import layers

from keras_ortho import EURNN, ScoRNN, ScoRNNCell
from keras_ortho.diagnostics import (
    end_to_end_jacobians,
    gradient_norms,
    input_sensitivity,
    manifold_distances,
)
from keras_ortho.diagnostics.probe import Probe
from tests.cells.architectures import ARCHITECTURES
from tests.diagnostics.networks import randomize

pytestmark = pytest.mark.backends

# Of float32, over some steps of numbers of order one.
TOLERANCE = 1e-5


def data(batch=3, time=5, m=2, seed=0):
    return np.random.default_rng(seed).normal(size=(batch, time, m)).astype("float32")


def output(model, x, layer=None):
    """What the model gives while its layer is observed."""
    return Probe(model, layer, lambda probe, x: probe.observe(x, lambda *_: None)[0])(x)


LAYERS = {
    **{str(a): lambda a=a, **kw: a.layer(**a.arguments, **kw) for a in ARCHITECTURES},
    "SimpleRNN": lambda **kw: layers.SimpleRNN(4, **kw),
    "LSTM": lambda **kw: layers.LSTM(4, **kw),
    "GRU": lambda **kw: layers.GRU(4, **kw),
    "StackedRNNCells": lambda **kw: layers.RNN(
        [layers.LSTMCell(3), ScoRNNCell(4), layers.GRUCell(2)], **kw
    ),
}
# One of each way: the plain step, gates, a read-out, nested states.
FAST = {"ScoRNN", "GORU", "EURNN", "LSTM", "StackedRNNCells"}
ALL = {"return_sequences": True}
OPTIONS = [
    {"go_backwards": True},
    {**ALL, "zero_output_for_mask": True},
    {**ALL, "go_backwards": True, "zero_output_for_mask": True},
    {"unroll": True},
]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        *(
            pytest.param(name, ALL, marks=() if name in FAST else pytest.mark.slow)
            for name in LAYERS
        ),
        *(("ScoRNN", options) for options in OPTIONS),
        *(pytest.param("LSTM", each, marks=pytest.mark.slow) for each in OPTIONS),
    ],
)
def test_observed_output_is_the_layers(name, options, masked):
    mask = [layers.Masking()] if masked else []
    model = keras.Sequential([keras.Input((5, 2)), *mask, LAYERS[name](**options)])
    randomize(model)
    x = data()
    x[0, 3:] = x[1, :2] = x[2, 2] = 0  # At the end, at the beginning, between.
    np.testing.assert_allclose(
        output(model, x), model.predict(x, verbose=0), rtol=0, atol=TOLERANCE
    )


@pytest.mark.slow_on_jax
def test_steps_that_are_masked_do_not_count():
    rnn = layers.Masking(), layers.SimpleRNN(3), layers.Dense(1)
    model = keras.Sequential([keras.Input((None, 2)), *rnn])
    randomize(model)
    x, y, kept = data(1, 6), np.ones((1, 1)), [0, 2, 3]
    x[0, [1, 4, 5]] = 0
    without = x[:, kept]
    norms = gradient_norms(model, x, y, loss="mse")
    expected = gradient_norms(model, without, y, loss="mse")
    np.testing.assert_allclose(norms[kept], expected, rtol=TOLERANCE)
    assert not norms[[1, 4, 5]].any()
    found, expected = (end_to_end_jacobians(model, each) for each in (x, without))
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)
    found, expected = (input_sensitivity(model, each) for each in (x, without))
    part = found[np.ix_(kept, kept)]
    np.testing.assert_allclose(part, expected, rtol=0, atol=TOLERANCE)
    assert not found[:, [1, 4, 5]].any()
    np.testing.assert_array_equal(found[5], found[3])
    # Nor do they count in the mean over sequences.
    other = data(1, 6, seed=1)
    two = np.concatenate([x, other])
    both = gradient_norms(model, two, np.ones((2, 1)), loss="mse")
    alone = gradient_norms(model, other, y, loss="mse")
    np.testing.assert_allclose(both[4:], alone[4:], rtol=TOLERANCE)


def functional():
    """Of several inputs, with an embedding, a way around and a model within."""
    words = keras.Input((4,), dtype="int32", name="words")
    numbers = keras.Input((4, 2), name="numbers")
    both = layers.Concatenate()([layers.Embedding(5, 3)(words), numbers])
    before = ScoRNN(3, return_sequences=True, name="before")(both)
    inner_input = keras.Input((4, 3))
    inner = keras.Model(
        inner_input, layers.LSTM(2, return_sequences=True, name="inside")(inner_input)
    )
    joined = layers.Concatenate()([inner(before), both])
    after = layers.GRU(3, name="after")(joined)
    model = keras.Model([words, numbers], layers.Dense(1)(after))
    randomize(model)
    return model


@pytest.mark.parametrize("name", ["before", "inside", "after"])
def test_a_layer_within_a_model(name):
    """Of which it observes one, with others before and after it."""
    model = functional()
    x = [np.array([[0, 1, 4, 2], [3, 3, 0, 1]]), data(2, 4)]
    expected = model.predict(x, verbose=0)
    by_name = dict(zip(["numbers", "words"], reversed(x), strict=True))
    for given in (x, by_name):
        found = output(model, given, name)
        np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)
    with pytest.raises(ValueError, match="shapes of the model's inputs.*Received: "):
        output(model, {**by_name, "numbers": x[1][..., :1]}, name)


def test_both_directions():
    """Each is the layer by itself, and the one that turns the sequences around."""
    both = layers.Bidirectional(layers.LSTM(3), name="both")
    model = keras.Sequential([keras.Input((4, 2)), both])
    randomize(model)
    x = data(2, 4)
    for layer, given in ((both.forward_layer, x), (both.backward_layer, x[:, ::-1])):
        alone = keras.Sequential([keras.Input((4, 2)), layers.LSTM(3)])
        alone.set_weights(layer.get_weights())
        np.testing.assert_allclose(
            end_to_end_jacobians(model, x, layer=layer.name),
            end_to_end_jacobians(alone, given),
            rtol=0,
            atol=TOLERANCE,
        )
        np.testing.assert_allclose(
            output(model, x, layer), model.predict(x, verbose=0), atol=TOLERANCE
        )


def test_the_state_before_the_first_step():
    """That of the time of the call, on JAX, too, where constants are compiled."""

    def first(model):
        return Probe(model, None, lambda p, x: p.observe(x, lambda s, x, h, m: h)[1])

    layer, x = layers.SimpleRNN(2, stateful=True), data(1, 2)
    model = keras.Sequential([keras.Input(batch_shape=(1, 2, 2)), layer])
    probe = first(model)
    for start in (0.25, 0.5):
        layer.states[0].assign(np.full((1, 2), start))
        np.testing.assert_array_equal(probe(x)[0], np.full((1, 2), start))
    layer = ScoRNN(3, stateful=True, trainable_initial_state=True)
    model = keras.Sequential([keras.Input(batch_shape=(1, 2, 2)), layer])
    randomize(model)
    probe = first(model)
    np.testing.assert_array_equal(probe(x)[0, 0], layer.cell.initial_state)
    model(x)
    np.testing.assert_array_equal(probe(x)[0], layer.states[0])


def test_stacked_cells():
    """The first cell's state acts on the second one's at the same step."""
    cells = [layers.SimpleRNNCell(2), layers.SimpleRNNCell(2)]
    stacked = keras.Sequential([keras.Input((4, 2)), layers.RNN(cells)])
    one, two = (layers.SimpleRNN(2, return_sequences=i == 0) for i in range(2))
    apart = keras.Sequential([keras.Input((4, 2)), one, two])
    randomize(stacked)
    randomize(apart)
    x, y = data(2, 4), np.ones((2, 2))
    for state, layer in enumerate([one, two]):
        np.testing.assert_allclose(
            gradient_norms(stacked, x, y, loss="mse", state=state),
            gradient_norms(apart, x, y, loss="mse", layer=layer),
            rtol=TOLERANCE,
        )


def test_an_output_made_of_the_state():
    """EURNN's may be the real part; held against a model that takes it itself."""
    real = EURNN(2, real_output=True, return_sequences=True)
    whole = EURNN(2, return_sequences=True)
    model = keras.Sequential([keras.Input((4, 2)), real, layers.Dense(1)])
    other = keras.Sequential([keras.Input((4, 2)), whole, layers.Dense(1)])
    randomize(model)
    kernel, bias = model.layers[1].get_weights()
    whole.set_weights(real.get_weights())
    other.layers[1].set_weights([np.concatenate([kernel, 0 * kernel]), bias])
    x, y = data(2, 4), np.ones((2, 4, 1))
    norms = gradient_norms(model, x, y, loss="mse")
    np.testing.assert_allclose(
        norms, gradient_norms(other, x, y, loss="mse"), rtol=TOLERANCE
    )
    assert norms.min() > 1e-3


@pytest.mark.slow
def test_the_model_stays_as_it_is():
    inputs = keras.Input(batch_shape=(3, 5, 2))
    first = ScoRNN(3, dropout=0.3, seed=1, return_sequences=True, stateful=True)
    last = layers.LSTM(2, stateful=True, recurrent_dropout=0.2, seed=2)
    normed = layers.BatchNormalization()(first(inputs))
    model = keras.Model(inputs, last(layers.Dropout(0.5, seed=3)(normed)))
    model.compile("adam", "mse")
    x, y = data(), np.ones((3, 2), "float32")
    model.fit(x, y, batch_size=3, verbose=0)

    def everything():
        variables = [*model.variables, *model.optimizer.variables]
        for layer in (first, last):
            variables += layer.states or []
        return [np.array(keras.ops.convert_to_numpy(v)) for v in variables]

    before = everything()
    attributes = [dict(vars(layer)).keys() for layer in (first, last)]
    norms = gradient_norms(model, x, y, layer=last)
    input_sensitivity(model, x, layer=first)
    end_to_end_jacobians(model, x, layer=last)
    manifold_distances(model)
    for value, expected in zip(everything(), before, strict=True):
        np.testing.assert_array_equal(value, expected)
    assert [vars(layer).keys() for layer in (first, last)] == attributes
    assert last.use_cudnn == "auto"
    np.testing.assert_array_equal(gradient_norms(model, x, y, layer=last), norms)
