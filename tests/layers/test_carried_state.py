import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import ENRNN, ScoRNN
from keras_ortho.layers.carried_state import CarriedState
from tests.gradients import weight_gradients
from tests.saving import reloaded

pytestmark = [
    pytest.mark.backends,
    pytest.mark.filterwarnings("ignore:`shuffle=True` was passed"),
]

BATCH, TIME, FEATURES = 3, 4, 2
LAYERS = {
    "lstm": lambda **kwargs: keras.layers.LSTM(5, **kwargs),
    "scornn": lambda **kwargs: ScoRNN(5, **kwargs),
    "enrnn": lambda **kwargs: ENRNN(3, 2, activation="relu", **kwargs),
    "start": lambda **kwargs: ScoRNN(5, trainable_initial_state=True, **kwargs),
}
# tanh and sums of at most 5 terms, at most 12 steps.
ATOL = 100 * np.finfo("float32").eps


def recurrent(name):
    return LAYERS[name](return_sequences=True, return_state=True)


def network(name):
    keras.utils.set_random_seed(0)
    inputs = keras.Input(batch_shape=(BATCH, TIME, FEATURES))
    layer = CarriedState(recurrent(name))
    return keras.Model(inputs, layer(inputs)), layer


@pytest.fixture
def text():
    return np.random.default_rng(0).normal(size=(BATCH, 3 * TIME, FEATURES))


def pieces(text):
    return np.split(text, 3, axis=1)


@pytest.mark.parametrize("name", LAYERS)
def test_pieces_are_as_the_whole(name, text):
    model, layer = network(name)
    whole = ops.convert_to_numpy(layer.layer(text)[0])
    assert np.abs(whole).max() > 1e-3
    for _ in range(2):
        parts = [model.predict(piece, verbose=0) for piece in pieces(text)]
        np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, atol=ATOL)
        layer.reset_state()


@pytest.mark.parametrize("name", ["lstm", "scornn"])
def test_states_are_carried_within_fit(name, text):
    """Where Keras's own stateful layers do so on TensorFlow only."""
    model, layer = network(name)
    model.compile(keras.optimizers.SGD(0.0), "mse")
    x = np.concatenate(pieces(text))
    whole = ops.convert_to_numpy(layer.layer(text)[0])
    zeros = np.zeros((len(x), TIME, 5))
    model.fit(x, zeros, batch_size=BATCH, shuffle=False, verbose=0)
    state = ops.convert_to_numpy(layer.states[0])
    np.testing.assert_allclose(state, whole[:, -1], atol=ATOL)
    # The loss is that of the whole, not of pieces that each start from zero.
    layer.reset_state()
    loss = model.evaluate(x, zeros, batch_size=BATCH, verbose=0)
    assert loss == pytest.approx(np.mean(whole**2), rel=1e-4)


def test_the_first_batch_trains_the_initial_state(text):
    """From which alone it begins, as it is by then."""
    _, layer = network("start")
    first, second, third = pieces(text)
    initial = layer.layer.cell.initial_state
    initial.assign([0.5, -1.0, 1.5, 0.5, -0.5])
    whole, _ = layer.layer(text)
    for piece, begins in ((first, True), (second, False)):
        _, found = weight_gradients(layer, ops.sum, piece)
        assert np.any(found["initial_state"]) == begins
        layer(piece)  # JAX's gradient leaves the layer as it was.
    layer.reset_state()
    initial.assign(-initial)
    layer(first), layer(second)
    expected, _ = layer.layer(text)
    np.testing.assert_allclose(layer(third), expected[:, -TIME:], atol=ATOL)
    assert np.abs(ops.convert_to_numpy(whole - expected)).max() > 1000 * ATOL


def test_saved_with_the_states(text, tmp_path):
    model, _ = network("scornn")
    first, second, _ = pieces(text)
    model.predict(first, verbose=0)
    reloaded(model, tmp_path, second)


def test_other_sequences_than_it_was_built_for():
    layer = CarriedState(keras.layers.LSTM(4, return_sequences=True, return_state=True))
    layer.reset_state()  # There is none yet.
    layer(np.zeros((4, 3, 2)))
    with pytest.raises(
        ValueError, match=r"must have 4 sequences.*Received: .*\(2, 3, 2\)"
    ):
        layer(np.zeros((2, 3, 2)))


def test_a_smaller_last_batch_in_fit(text):
    """Of which a graph of TensorFlow knows no size."""
    model, _ = network("scornn")
    model.compile("sgd", "mse", jit_compile=keras.backend.backend() == "jax")
    x = np.concatenate(pieces(text))[: BATCH + 1]
    # TensorFlow's error is no `ValueError`.
    with pytest.raises(Exception, match=r"must have 3 sequences.*shape.*1\D+4\D+2"):
        model.fit(x, np.zeros((len(x), TIME, 5)), BATCH, shuffle=False, verbose=0)
