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


def test_irnn_from_an_orthogonal_matrix():
    _, first, _ = weights_of(baselines.irnn(9, orthogonal=True, seed=1))
    _, again, _ = weights_of(baselines.irnn(9, orthogonal=True, seed=1))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(first.T @ first, np.eye(9), atol=1e-6)
    assert np.abs(first - np.eye(9)).max() > 0.1


def test_the_orthogonal_matrix_is_not_made_from_the_input_kernel():
    kernel, recurrent, _ = weights_of(
        baselines.irnn(40, orthogonal=True, seed=1), features=40
    )
    factor, triangle = np.linalg.qr(kernel)
    factor *= np.sign(np.diag(triangle))
    # The same one would give 40; of independent ones the trace has deviation 1.
    assert abs(np.trace(factor.T @ recurrent)) < 8


def test_irnn_with_other_settings():
    layer = baselines.irnn(4, kernel_initializer="glorot_uniform", name="named")
    assert isinstance(layer.kernel_initializer, keras.initializers.GlorotUniform)
    assert layer.name == "named"


@pytest.mark.parametrize("gain", [0, -1.0, float("nan"), "one"])
def test_gain_must_be_positive(gain):
    with pytest.raises(ValueError, match="`gain` must be .*Received: gain="):
        baselines.irnn(4, gain)


@pytest.mark.parametrize("forget_bias", [-4, -2.0, 0, 0.5, 1.0, 4])
def test_forget_bias(forget_bias):
    *_, bias = weights_of(baselines.lstm(5, forget_bias))
    expected = np.repeat([0, forget_bias, 0, 0], 5)
    np.testing.assert_array_equal(bias, expected)


def test_the_forget_gates_are_where_they_are_thought_to_be():
    """With a large bias the cells keep what they hold, with a small one they do not."""
    x = np.zeros((1, 20, 2), "float32")
    held = [np.zeros((1, 3), "float32"), np.ones((1, 3), "float32")]
    for value, low, high in [(20.0, 0.99, 1.01), (-20.0, -0.01, 0.01)]:
        layer = baselines.lstm(
            3,
            value,
            kernel_initializer="zeros",
            recurrent_initializer="zeros",
            return_state=True,
        )
        cell = ops.convert_to_numpy(layer(x, initial_state=held)[2])
        assert np.all((cell > low) & (cell < high))


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


@pytest.mark.parametrize("name", ["bias_initializer", "unit_forget_bias"])
def test_what_the_forget_bias_replaces(name):
    with pytest.raises(ValueError, match=f"`{name}`: give .*Received: {name}='ones'"):
        baselines.lstm(4, **{name: "ones"})


def test_forget_bias_must_be_finite():
    with pytest.raises(ValueError, match="Received: forget_bias=nan"):
        baselines.lstm(4, float("nan"))


@pytest.mark.parametrize("make", [baselines.rnn, baselines.irnn, baselines.lstm])
@pytest.mark.parametrize("units", [0, 2.5, "4"])
def test_units_must_be_a_positive_integer(make, units):
    with pytest.raises(ValueError, match=f"Received: units={units!r}$"):
        make(units)


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
    ("arguments", "message"),
    [
        (("rnn", 5, 1), "`kind` must be one of .*Received: kind='rnn'"),
        (("lstm", 0, 1), "Received: units=0"),
        (("lstm", 5, 1.5), "Received: features=1.5"),
        (("lstm", 5, 1, -2), "Received: outputs=-2"),
    ],
)
def test_numbers_that_are_none(arguments, message):
    with pytest.raises(ValueError, match=message):
        baselines.num_parameters(*arguments)


def test_parameters_must_be_positive():
    with pytest.raises(ValueError, match="Received: parameters=0"):
        baselines.matched_units("gru", 0, 1)
