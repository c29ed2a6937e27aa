import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import baselines
from tests.saving import reloaded


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
    layer = baselines.irnn(40, orthogonal=True, seed=1)
    kernel, recurrent, _ = weights_of(layer, 40)
    factor, triangle = np.linalg.qr(kernel)
    factor *= np.sign(np.diag(triangle))
    # The same one would give 40; of independent ones the trace has deviation 1.
    assert abs(np.trace(factor.T @ recurrent)) < 8


@pytest.mark.parametrize("forget_bias", [-4.0, 1.0])
def test_lstm(forget_bias, tmp_path):
    layer = baselines.lstm(4, forget_bias, return_sequences=True)
    expected = np.repeat([0, forget_bias, 0, 0], 4)
    np.testing.assert_array_equal(weights_of(layer)[2], expected)
    model = keras.Sequential([keras.Input((5, 3)), layer, baselines.irnn(4)])
    x = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")
    loaded = reloaded(model, tmp_path, x)
    assert loaded.layers[0].bias_initializer.value == forget_bias


@pytest.mark.parametrize(
    ("kind", "layer"), [("simple_rnn", "SimpleRNN"), ("gru", "GRU"), ("lstm", "LSTM")]
)
def test_counts_are_kerass(kind, layer):
    model = keras.Sequential([keras.Input((None, 3)), getattr(keras.layers, layer)(7)])
    assert baselines.num_parameters(kind, 7, features=3) == model.count_params()
    model.add(keras.layers.Dense(5))
    found = baselines.num_parameters(kind, 7, features=3, outputs=5)
    assert found == model.count_params()


def test_matched_units_are_the_nearest():
    counts = [baselines.num_parameters("gru", n, 3, 2) for n in range(1, 20)]
    for parameters in range(1, counts[-2]):
        found = baselines.matched_units("gru", parameters, 3, 2)
        distance = np.abs(np.array(counts) - parameters)
        assert distance[found - 1] == distance.min()


def test_the_papers_lstms():
    """Of scoRNN's parameters for TIMIT and adding; 84 for TIMIT is in a docstring."""
    assert baselines.matched_units("lstm", 135_208, 129, 129) == 120
    # The paper's has 158 units; 157 come nearer.
    assert baselines.matched_units("lstm", 200_304, 129, 129) == 157
    assert baselines.matched_units("lstm", 15_046, 2, 1) == 60
