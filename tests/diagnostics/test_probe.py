"""Any model with a recurrent layer can be observed, and stays as it is."""

import re

import keras
import numpy as np
import pytest
from keras import layers

from keras_ortho import EURNN, GORU, ScoRNN, ScoRNNCell
from keras_ortho.diagnostics import end_to_end_jacobians, trajectories
from keras_ortho.diagnostics.flow import gradient_norms, input_sensitivity
from keras_ortho.diagnostics.probe import Probe
from tests.diagnostics.networks import model_of, randomize

pytestmark = pytest.mark.backends

# Of float32, over some steps of numbers of order one.
TOLERANCE = 1e-5
X = np.random.default_rng(0).normal(size=(3, 5, 2)).astype("float32")
Y = np.ones((3, 2), "float32")


def assert_observed(model, x=X, layer=None):
    """What the model gives while its layer is observed is what it gives."""
    probe = Probe(model, layer, lambda probe, x: probe.observe(x, lambda *_: None)[0])
    expected = model.predict(x, verbose=0)
    np.testing.assert_allclose(probe(x), expected, rtol=0, atol=TOLERANCE)


ALL = {"return_sequences": True}
BACK = {**ALL, "go_backwards": True, "zero_output_for_mask": True}


@pytest.mark.parametrize(
    "make",
    [
        lambda: ScoRNN(4, **BACK),
        lambda: GORU(4, **ALL),
        lambda: EURNN(4, real_output=True, **ALL),
        lambda: layers.LSTM(4, unroll=True),
        lambda: layers.Bidirectional(layers.LSTM(3, name="forward"), name="both"),
        lambda: layers.RNN([layers.LSTMCell(3), ScoRNNCell(4), layers.GRUCell(2)]),
    ],
)
def test_observed_output_is_the_layers(make):
    model = model_of(layers.Masking(), layer := make())
    x = X.copy()
    x[0, 3:] = x[1, :2] = x[2, 2] = 0  # At the end, at the beginning, between.
    one = layer.forward_layer if layer.name == "both" else layer
    assert_observed(model, x, one)
    assert_observed(model, X, one)


@pytest.mark.slow_on_jax
def test_steps_that_are_masked_do_not_count():
    model = model_of(layers.Masking(), layers.SimpleRNN(2, **ALL), layers.Dense(2))
    kept, masked = [0, 2, 3], [1, 4, 5]
    x = np.zeros((1, 6, 2))
    x[:, kept] = without = X[:1, :3]
    norms = gradient_norms(model, x, x)
    expected = gradient_norms(model, without, without)
    np.testing.assert_allclose(norms[kept], expected, rtol=TOLERANCE)
    assert not norms[masked].any()
    found, expected = (input_sensitivity(model, each) for each in (x, without))
    np.testing.assert_allclose(found[np.ix_(kept, kept)], expected, 0, TOLERANCE)
    assert not found[:, masked].any()
    # Nor do they count in the mean over sequences.
    other = X[:1, [0, 0, 1, 2, 3, 4]]
    both = gradient_norms(model, *[np.concatenate([x, other])] * 2)
    alone = gradient_norms(model, other, other)
    np.testing.assert_allclose(both[masked], alone[masked], rtol=TOLERANCE)


def test_layers_within_a_model():
    """Of several inputs, with an embedding, a way around and a model within."""
    words, numbers = keras.Input((5,), dtype="int32"), keras.Input((5, 2))
    both = layers.Concatenate()([layers.Embedding(5, 3)(words), numbers])
    before = ScoRNN(2, name="before", **ALL)(both)
    inner = model_of(layers.LSTM(2, name="inside", **ALL))
    after = layers.GRU(3, name="after")(layers.Concatenate()([inner(before), both]))
    model = keras.Model([words, numbers], layers.Dense(1)(after))
    randomize(model)
    x = [np.arange(15).reshape(3, 5) % 5, X]
    for name in ("before", "inside", "after"):
        assert_observed(model, x, name)


def test_stacked_cells():
    """The first cell's state acts on the second one's at the same step."""
    stacked = model_of(layers.RNN([layers.SimpleRNNCell(2), layers.SimpleRNNCell(2)]))
    one, two = layers.SimpleRNN(2, **ALL), layers.SimpleRNN(2)
    apart = model_of(one, two)
    for state, layer in enumerate([one, two]):
        found = gradient_norms(stacked, X, Y, state=state)
        expected = gradient_norms(apart, X, Y, layer=layer)
        np.testing.assert_allclose(found, expected, rtol=TOLERANCE)


def test_weights_and_states_are_those_of_the_call():
    """On JAX, too, where constants are compiled."""
    layer = ScoRNN(3, stateful=True, trainable_initial_state=True)
    model = keras.Sequential([keras.Input(batch_shape=(3, 5, 2)), layer])
    states = Probe(model, None, lambda p, x: p.observe(x, lambda s, x, h, m: h)[1])
    for seed in (1, 2):
        randomize(model, seed)
        layer.reset_state()
        np.testing.assert_array_equal(states(X)[0, 0], layer.cell.initial_state)
        model(X)
        for _ in range(2):  # To observe them does not change them.
            np.testing.assert_array_equal(states(X)[0], layer.states[0])


class OtherOutput(layers.Layer):
    state_size = output_size = 2

    def call(self, inputs, states):
        return 2 * states[0], [inputs + states[0]]


def shared():
    layer, inputs = ScoRNN(2, **ALL), keras.Input((5, 2))
    return keras.Model(inputs, layer(layer(inputs)))


one = model_of(ScoRNN(2))
two = ScoRNN(2, name="one", **ALL), model_of(ScoRNN(2, name="two"))
other, lstm = layers.RNN(OtherOutput()), layers.LSTM(2)
REFUSED = {
    "must be built": lambda: input_sensitivity(keras.Sequential([ScoRNN(2)]), X),
    "it has none": lambda: input_sensitivity(model_of(layers.Dense(2)), X),
    "'one', 'two'": lambda: input_sensitivity(model_of(*two), X),
    "call the recurrent layer once": lambda: input_sensitivity(shared(), X),
    "less than 1, the number": lambda: end_to_end_jacobians(one, X, state=1),
    "a single loss": lambda: gradient_norms(one, X, Y, loss=["mse", "mae"]),
    "have one output": lambda: gradient_norms(one, X, [Y, Y]),
    "number of sequences": lambda: gradient_norms(one, X, Y[:1]),
    "one of its states": lambda: gradient_norms(model_of(other), X, Y),
    "one state of two numbers": lambda: trajectories(model_of(lstm), [[0, 0]], 3),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_measured(message):
    with pytest.raises(ValueError, match=f"(?s){re.escape(message)}.*Received: "):
        REFUSED[message]()
