"""Wrappers of recurrent layers: carried states, and trained initial ones."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import ENRNN, ScoRNN, ScoRNNCell
from keras_ortho.layers import CarriedState, TrainedInitialState
from tests.gradients import weight_gradients
from tests.saving import reloaded

pytestmark = [
    pytest.mark.backends,
    pytest.mark.filterwarnings("ignore:`shuffle=True` was passed"),
]

BATCH, TIME, FEATURES = 3, 4, 2
FULL = {"return_sequences": True, "return_state": True}
LAYERS = {
    "lstm": lambda: keras.layers.LSTM(5, **FULL),
    "enrnn": lambda: ENRNN(3, 2, activation="relu", **FULL),
    "start": lambda: ScoRNN(5, trainable_initial_state=True, **FULL),
}
# tanh and sums of at most 5 terms, at most 12 steps.
ATOL = 100 * np.finfo("float32").eps
TEXT = np.random.default_rng(0).normal(size=(BATCH, 3 * TIME, FEATURES))
PIECES = np.split(TEXT, 3, axis=1)
X = np.random.default_rng(0).normal(size=(4, 5, 3)).astype("float32")


def network(name):
    keras.utils.set_random_seed(0)
    inputs = keras.Input(batch_shape=(BATCH, TIME, FEATURES))
    layer = CarriedState(LAYERS[name]())
    return keras.Model(inputs, layer(inputs)), layer


@pytest.mark.parametrize("name", LAYERS)
def test_pieces_are_as_the_whole(name, tmp_path):
    """Also within fit, where Keras's own stateful layers are so on TensorFlow only."""
    model, layer = network(name)
    whole = ops.convert_to_numpy(layer.layer(TEXT)[0])
    assert np.abs(whole).max() > 1e-3
    parts = [model.predict(piece, verbose=0) for piece in PIECES]
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, atol=ATOL)
    layer.reset_state()
    model.compile(keras.optimizers.SGD(0.0), "mse")
    x = np.concatenate(PIECES)
    zeros = np.zeros((len(x), *parts[0].shape[1:]))
    model.fit(x, zeros, batch_size=BATCH, shuffle=False, verbose=0)
    np.testing.assert_allclose(layer.states[0], whole[:, -1], atol=ATOL)
    # The loss is that of the whole, not of pieces that each start from zero.
    layer.reset_state()
    loss = model.evaluate(x, zeros, batch_size=BATCH, verbose=0)
    assert loss == pytest.approx(np.mean(whole**2), rel=1e-4)
    reloaded(model, tmp_path, PIECES[0])


def test_the_first_batch_trains_the_initial_state():
    """From which alone it begins, as it is by then."""
    _, layer = network("start")
    first, second, third = PIECES
    initial = layer.layer.cell.initial_state
    initial.assign([0.5, -1.0, 1.5, 0.5, -0.5])
    whole, _ = layer.layer(TEXT)
    for piece, begins in ((first, True), (second, False)):
        _, found = weight_gradients(layer, ops.sum, piece)
        assert np.any(found["initial_state"]) == begins
        layer(piece)  # JAX's gradient leaves the layer as it was.
    layer.reset_state()
    initial.assign(-initial)
    layer(first), layer(second)
    expected, _ = layer.layer(TEXT)
    np.testing.assert_allclose(layer(third), expected[:, -TIME:], atol=ATOL)
    assert np.abs(ops.convert_to_numpy(whole - expected)).max() > 1000 * ATOL


def test_a_smaller_last_batch():
    """Of which a graph of TensorFlow knows no size, and a single row would do."""
    model, _ = network("lstm")
    model.compile("sgd", "mse", jit_compile=keras.backend.backend() == "jax")
    x = np.concatenate(PIECES)[: BATCH + 1]
    # TensorFlow's error is no `ValueError`.
    with pytest.raises(Exception, match=r"3 sequences|not compatible with .*\[3"):
        model.fit(x, np.zeros((len(x), TIME, 5)), BATCH, shuffle=False, verbose=0)


def test_starts_from_its_states():
    inner = keras.layers.LSTM(6, return_sequences=True)
    layer = TrainedInitialState(inner, "state_uniform")
    outputs = layer(X)
    states = [ops.convert_to_numpy(state) for state in layer.initial_states]
    drawn = np.concatenate(states)
    assert np.all(np.abs(drawn) <= np.sqrt(3 / 12))
    assert len(np.unique(drawn)) == drawn.size == 12  # Each draws its own.
    given = [np.tile(state, (4, 1)) for state in states]
    np.testing.assert_array_equal(outputs, inner(X, initial_state=given))
    other = [np.zeros_like(state) for state in given]
    np.testing.assert_array_equal(layer(X, initial_state=other), inner(X))


@pytest.mark.parametrize("given", [False, True])
def test_in_both_directions(given, tmp_path):
    def make(**kwargs):
        layer = keras.layers.LSTM(3, return_sequences=True, **kwargs)
        return TrainedInitialState(layer, "state_uniform")

    backward = {"backward_layer": make(go_backwards=True)} if given else {}
    both = keras.layers.Bidirectional(make(), **backward)
    model = keras.Sequential([keras.Input((5, 3)), both])
    outputs = ops.convert_to_numpy(model(X))
    np.testing.assert_array_equal(outputs[..., :3], both.forward_layer(X))
    backwards = ops.flip(both.backward_layer(X), axis=1)
    np.testing.assert_array_equal(outputs[..., 3:], backwards)
    reloaded(model, tmp_path, X)


def test_trained_initial_states_are_trained_saved_and_masked(tmp_path):
    layer = TrainedInitialState(keras.layers.LSTM(6))
    masking, dense = keras.layers.Masking(), keras.layers.Dense(1)
    model = keras.Sequential([keras.Input((5, 3)), masking, layer, dense])
    model.compile("sgd", "mse")
    model.fit(X, np.ones((4, 1)), verbose=0)
    assert all(np.abs(ops.convert_to_numpy(s)).max() > 0 for s in layer.initial_states)
    padded = np.concatenate([np.zeros((4, 2, 3), "float32"), X[:, 2:]], axis=1)
    # A step that is masked leaves the state as it is.
    masked = layer(padded, mask=padded.any(-1))
    np.testing.assert_allclose(layer(X[:, 2:]), masked, atol=1e-6)
    reloaded(model, tmp_path, X)


def test_of_stacked_cells():
    x = X.astype("float64")
    kwargs = {"dtype": "float64"}
    cells = [keras.layers.LSTMCell(6, **kwargs), ScoRNNCell(5, **kwargs)]
    cells = keras.layers.StackedRNNCells(cells, **kwargs)
    stack = keras.layers.RNN(cells, **FULL, **kwargs)
    layer = TrainedInitialState(stack, "ones", **kwargs)
    # Ten steps, each with sums of less than 20 products of about 1.
    atol = 10 * 20 * np.finfo("float64").eps
    expected = stack(x, initial_state=[[np.ones((4, 6))] * 2, np.ones((4, 5))])
    np.testing.assert_allclose(layer(x)[0], expected[0], atol=atol)
    # And carried on.
    carried = CarriedState(layer, **kwargs)
    whole = carried(np.concatenate([x, x], axis=1))
    carried.reset_state()
    for part in np.split(ops.convert_to_numpy(whole), 2, axis=1):
        np.testing.assert_allclose(carried(x), part, atol=atol)
