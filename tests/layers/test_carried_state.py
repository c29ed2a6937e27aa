import keras
import numpy as np
import pytest

from keras_ortho import ENRNN, ScoRNN
from keras_ortho.layers.carried_state import CarriedState
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
    whole = keras.ops.convert_to_numpy(layer.layer(text)[0])
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
    whole = keras.ops.convert_to_numpy(layer.layer(text)[0])
    zeros = np.zeros((len(x), TIME, 5))
    model.fit(x, zeros, batch_size=BATCH, shuffle=False, verbose=0)
    state = keras.ops.convert_to_numpy(layer.states[0])
    np.testing.assert_allclose(state, whole[:, -1], atol=ATOL)
    # The loss is that of the whole, not of pieces that each start from zero.
    layer.reset_state()
    loss = model.evaluate(x, zeros, batch_size=BATCH, verbose=0)
    assert loss == pytest.approx(np.mean(whole**2), rel=1e-4)


def test_weights():
    _, layer = network("lstm")
    assert [state.path.split("/")[-1] for state in layer.states] == [
        "state_0",
        "state_1",
    ]
    trained = {id(weight) for weight in layer.trainable_weights}
    assert len(trained) == 3
    assert not trained & {id(state) for state in layer.states}


def test_starts_from_the_trained_state():
    _, layer = network("start")
    start = keras.ops.convert_to_numpy(layer.layer.cell.initial_state)
    assert np.abs(start).max() > 0
    for state in keras.ops.convert_to_numpy(layer.states[0]):
        np.testing.assert_array_equal(state, start)


def test_saved_with_the_states(text, tmp_path):
    model, _ = network("scornn")
    first, second, _ = pieces(text)
    model.predict(first, verbose=0)
    reloaded(model, tmp_path, second)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"return_state": True},
        {"return_sequences": True},
        {"return_sequences": True, "return_state": True, "stateful": True},
    ],
)
def test_the_layer_must_give_its_state(kwargs):
    with pytest.raises(ValueError, match="`layer` must be .* Received: layer="):
        CarriedState(keras.layers.GRU(2, **kwargs))
    inner = keras.layers.GRU(2, return_sequences=True, return_state=True)
    with pytest.raises(ValueError, match="`layer` must be .* Received: layer="):
        CarriedState(keras.layers.Bidirectional(inner))


def test_the_batch_size_must_be_known():
    layer = CarriedState(recurrent("lstm"))
    with pytest.raises(ValueError, match="batch size must be known.*Received: input"):
        layer(keras.Input((TIME, FEATURES)))
