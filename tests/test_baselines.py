import json

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import baselines
from tests.saving import reloaded

LAYERS = {
    "simple_rnn": keras.layers.SimpleRNN,
    "gru": keras.layers.GRU,
    "lstm": keras.layers.LSTM,
}


def weights_of(layer, features=3):
    layer.build((None, None, features))
    return [ops.convert_to_numpy(w) for w in layer.weights]


@pytest.mark.parametrize("gain", [1.0, 0.01])
def test_irnn(gain):
    layer = baselines.irnn(50, gain, return_sequences=True)
    kernel, recurrent, bias = weights_of(layer, 40)
    np.testing.assert_array_equal(recurrent, np.float32(gain) * np.eye(50))
    np.testing.assert_array_equal(bias, 0)
    # Five standard errors of the deviation of 2 000 draws.
    assert kernel.std() == pytest.approx(0.001, rel=5 / np.sqrt(4000))
    x = np.random.default_rng(0).normal(size=(2, 3, 40)).astype("float32")
    h = np.zeros((2, 50))
    for t in range(3):
        h = np.maximum(x[:, t] @ kernel + gain * h, 0)
    np.testing.assert_allclose(layer(x)[:, -1], h, atol=1e-7)


def test_the_orthogonal_matrix_is_not_made_from_the_input_kernel():
    kernel, recurrent, _ = weights_of(
        baselines.irnn(40, orthogonal=True, seed=1), features=40
    )
    factor, triangle = np.linalg.qr(kernel)
    factor *= np.sign(np.diag(triangle))
    # The same one would give 40; of independent ones the trace has deviation 1.
    assert abs(np.trace(factor.T @ recurrent)) < 8


@pytest.mark.parametrize("reference", [{}, {"unit_forget_bias": False}])
def test_is_kerass_lstm_where_that_can_do_it(reference):
    theirs = weights_of(keras.layers.LSTM(4, **reference))
    ours = weights_of(baselines.lstm(4, 0.0 if reference else 1.0))
    np.testing.assert_array_equal(ours[2], theirs[2])


def test_config_and_saved_model(tmp_path):
    layer = baselines.lstm(4, -4.0, return_sequences=True)
    config = json.loads(json.dumps(layer.get_config()))
    again = keras.layers.LSTM.from_config(config)
    assert again.get_config() == layer.get_config()
    np.testing.assert_array_equal(weights_of(again)[2], weights_of(layer)[2])
    model = keras.Sequential([keras.Input((5, 3)), layer, baselines.irnn(4)])
    model.compile("adam", "mse")
    x = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")
    model.fit(x, np.ones((2, 4)), verbose=0)
    loaded = reloaded(model, tmp_path, x)
    assert loaded.layers[0].bias_initializer.value == -4.0


@pytest.mark.parametrize("kind", sorted(LAYERS))
@pytest.mark.parametrize("units", [1, 4, 7])
@pytest.mark.parametrize("outputs", [0, 5])
def test_counts_are_kerass(kind, units, outputs):
    layers = [LAYERS[kind](units)] + ([keras.layers.Dense(outputs)] if outputs else [])
    model = keras.Sequential([keras.Input((None, 3)), *layers])
    found = baselines.num_parameters(kind, units, features=3, outputs=outputs)
    assert found == model.count_params()


@pytest.mark.parametrize("kind", sorted(LAYERS))
def test_matched_units_are_the_nearest(kind):
    counts = [baselines.num_parameters(kind, n, 3, 2) for n in range(1, 20)]
    for parameters in range(1, counts[-2]):
        found = baselines.matched_units(kind, parameters, 3, 2)
        distance = np.abs(np.array(counts) - parameters)
        assert distance[found - 1] == distance.min()


@pytest.mark.parametrize(
    ("parameters", "features", "outputs", "units"),
    [
        # scoRNN's for TIMIT and adding, and the LSTMs of the paper. (Its largest for
        # TIMIT has 158 units; 157 come nearer to the 200 304 of scoRNN.)
        (83_121, 129, 129, 84),
        (135_208, 129, 129, 120),
        (200_304, 129, 129, 157),
        (15_046, 2, 1, 60),
    ],
)
def test_the_papers_lstms(parameters, features, outputs, units):
    found = baselines.matched_units("lstm", parameters, features, outputs)
    assert found == units


@pytest.mark.parametrize(
    ("name", "arguments", "received"),
    [
        ("rnn", (0,), "units=0"),
        ("irnn", (2.5,), "units=2.5"),
        ("irnn", (4, 0), "gain=0"),
        ("lstm", ("4",), "units='4'"),
        ("lstm", (4, float("nan")), "forget_bias=nan"),
        ("num_parameters", ("rnn", 5, 1), "kind='rnn'"),
        ("num_parameters", ("lstm", 0, 1), "units=0"),
        ("num_parameters", ("lstm", 5, 1.5), "features=1.5"),
        ("num_parameters", ("lstm", 5, 1, -2), "outputs=-2"),
        ("matched_units", ("gru", 0, 1), "parameters=0"),
    ],
)
def test_bad_arguments(name, arguments, received):
    with pytest.raises(ValueError, match=f"Received: {received}$"):
        getattr(baselines, name)(*arguments)


@pytest.mark.parametrize("name", ["bias_initializer", "unit_forget_bias"])
def test_what_the_forget_bias_replaces(name):
    with pytest.raises(ValueError, match=f"`{name}`: give .*Received: {name}='ones'"):
        baselines.lstm(4, **{name: "ones"})
