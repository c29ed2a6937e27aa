import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import ScoRNNCell
from keras_ortho.layers import CarriedState, TrainedInitialState
from tests.saving import reloaded

X = np.random.default_rng(0).normal(size=(4, 5, 3)).astype("float32")


@pytest.mark.backends
@pytest.mark.parametrize("kind", ["SimpleRNN", "GRU", "LSTM"])
def test_starts_from_its_states(kind):
    inner = getattr(keras.layers, kind)(6, return_sequences=True)
    layer = TrainedInitialState(inner, "state_uniform")
    outputs = layer(X)
    states = [ops.convert_to_numpy(state) for state in layer.initial_states]
    assert len(states) == (2 if kind == "LSTM" else 1)
    drawn = np.concatenate(states)
    assert np.all(np.abs(drawn) <= np.sqrt(3 / 12))
    assert len(np.unique(drawn)) == drawn.size  # Each of an LSTM draws its own.
    given = [np.tile(state, (4, 1)) for state in states]
    np.testing.assert_array_equal(outputs, inner(X, initial_state=given))
    other = [np.zeros_like(state) for state in given]
    np.testing.assert_array_equal(layer(X, initial_state=other), inner(X))
    paths = {w.path.rpartition("/")[2] for w in layer.trainable_variables}
    assert {f"initial_state_{i}" for i in range(len(states))} < paths


@pytest.mark.backends
@pytest.mark.backends
@pytest.mark.parametrize("given", [False, True])
def test_in_both_directions(given, tmp_path):
    def make(**kwargs):
        layer = keras.layers.LSTM(3, return_sequences=True, **kwargs)
        return TrainedInitialState(layer, "state_uniform")

    backward = {"backward_layer": make(go_backwards=True)} if given else {}
    both = keras.layers.Bidirectional(make(), **backward)
    model = keras.Sequential([keras.Input((5, 3)), both])
    one, other = both.forward_layer, both.backward_layer
    assert (one.go_backwards, other.go_backwards) == (False, True)
    outputs = ops.convert_to_numpy(model(X))
    np.testing.assert_array_equal(outputs[..., :3], one(X))
    np.testing.assert_array_equal(outputs[..., 3:], ops.flip(other(X), axis=1))
    reloaded(model, tmp_path, X)


def test_they_are_trained_saved_and_masked(tmp_path):
    model = keras.Sequential(
        [
            keras.Input((5, 3)),
            keras.layers.Masking(),
            TrainedInitialState(keras.layers.LSTM(6)),
            keras.layers.Dense(1),
        ]
    )
    model.compile("sgd", "mse")
    model.fit(X, np.ones((4, 1)), verbose=0)
    layer = model.layers[-2]
    assert all(np.abs(ops.convert_to_numpy(s)).max() > 0 for s in layer.initial_states)
    padded = np.concatenate([np.zeros((4, 2, 3), "float32"), X[:, 2:]], axis=1)
    # A step that is masked leaves the state as it is.
    masked = layer(padded, mask=padded.any(-1))
    np.testing.assert_allclose(layer(X[:, 2:]), masked, atol=1e-6)
    reloaded(model, tmp_path, X)


def test_of_stacked_cells():
    x = X.astype("float64")
    cells = [
        keras.layers.LSTMCell(6, dtype="float64"),
        ScoRNNCell(5, dtype="float64"),
    ]
    stack = keras.layers.RNN(
        cells, return_sequences=True, return_state=True, dtype="float64"
    )
    layer = TrainedInitialState(stack, "ones", dtype="float64")
    # Ten steps, each with sums of less than 20 products of about 1.
    atol = 10 * 20 * np.finfo("float64").eps
    found = layer(x)
    expected = stack(x, initial_state=[[np.ones((4, 6))] * 2, np.ones((4, 5))])
    np.testing.assert_allclose(found[0], expected[0], atol=atol)
    assert len(layer.trainable_weights) == len(stack.trainable_weights) + 3
    # And carried on.
    carried = CarriedState(layer, dtype="float64")
    whole = carried(np.concatenate([x, x], axis=1))
    carried.reset_state()
    np.testing.assert_allclose(carried(x), whole[:, : x.shape[1]], atol=atol)
    np.testing.assert_allclose(carried(x), whole[:, x.shape[1] :], atol=atol)
