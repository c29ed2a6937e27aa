"""What is exported runs elsewhere, and gives what the model gives."""

import importlib.util

import keras
import numpy as np
import pytest

from keras_ortho import ENRNN, SVDRNN, ScoRNN, ScoRNNCell, freeze, parametrize
from keras_ortho.parametrizations import ScaledCayley

BACKEND = keras.backend.backend()
for package in ("tf2onnx", "onnxruntime", "ai_edge_litert"):
    if not importlib.util.find_spec(package):
        pytest.skip(f"{package} comes with the extra export", allow_module_level=True)


def data(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def assert_close(found, expected, steps):
    # Each step a sum of nine products of about 1.
    atol = steps * 20 * np.finfo("float32").eps
    np.testing.assert_allclose(found, expected, atol=atol)


@pytest.mark.backends
@pytest.mark.skipif(BACKEND == "torch", reason="Keras exports no axis of any size")
def test_a_saved_model_of_any_length(tmp_path):
    import tensorflow as tf

    layer = ENRNN(4, 3, return_sequences=True)
    frozen = freeze(keras.Sequential([keras.Input((None, 3)), layer]))
    frozen.export(str(tmp_path / "model"), format="tf_saved_model", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "model")
    for x in (data(2, 70, 3), data(1, 5, 3)):
        assert_close(loaded.serve(x), frozen(x), x.shape[1])


def orthogonal_lstm():
    return parametrize(keras.layers.LSTM(6), "recurrent_kernel", ScaledCayley())


@pytest.mark.skipif(BACKEND != "tensorflow", reason="jax2onnx is not in the extra")
@pytest.mark.parametrize(
    ("layer", "batch", "time"),
    [
        # More than one segment of the recurrence, where it has any.
        (lambda: ScoRNN(6), 2, 130),
        (lambda: SVDRNN(6, return_sequences=True, go_backwards=True), None, 61),
        (lambda: keras.layers.RNN(ScoRNNCell(6)), None, None),
        (orthogonal_lstm, None, 61),
    ],
)
def test_onnx_of_what_is_not_frozen(layer, batch, time, tmp_path):
    """The converter computes the kernel, of which the file has the value."""
    import onnxruntime

    model = keras.Sequential([keras.Input((time, 3), batch), layer()])
    x = data(2, time or 70, 3)
    expected = model.predict(x, verbose=0)  # Keras exports only what was called.
    model.export(str(tmp_path / "model.onnx"), format="onnx", verbose=False)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    (found,) = session.run(None, {session.get_inputs()[0].name: x})
    assert_close(found, expected, x.shape[1])
