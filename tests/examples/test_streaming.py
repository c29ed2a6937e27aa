"""A trained network, frame by frame in ONNX Runtime, is the network."""

import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_ortho import ScoRNN
from keras_ortho.audio import (
    log_power,
    read_audio,
    resynthesize,
    stft,
    to_int16,
    write_wav,
)

pytest.importorskip("onnxruntime", reason="needs the extra export")

ROOT = Path(__file__).parents[2]
RUN = """
import runpy, sys
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
sys.exit(bool({"keras", "tensorflow"} & set(sys.modules)))
"""


def streaming(*arguments, **kwargs):
    command = [sys.executable, "-c", RUN, "examples/streaming.py", *map(str, arguments)]
    return subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, check=True, **kwargs
    )


def test_a_network_as_if_from_a_microphone(tmp_path):
    random = np.random.default_rng(0)
    sound = 0.1 * random.normal(size=3000) * np.sin(np.arange(3000) / 300)
    write_wav(tmp_path / "speech.wav", sound, 8000)
    samples, _ = read_audio(tmp_path / "speech.wav")
    # About as loud as the speech: what is louder than full scale is written softer.
    model = keras.Sequential(
        [
            keras.Input((None, 129)),
            ScoRNN(16, return_sequences=True, trainable_initial_state=True),
            keras.layers.Dense(129, bias_initializer=keras.initializers.Constant(-9.0)),
        ]
    )
    model.save(tmp_path / "model.keras")
    frames = log_power(stft(samples / 32768))
    whole = model.predict(frames[None], verbose=0)[0]

    done = streaming(
        tmp_path / "model.keras", tmp_path / "speech.wav", "--out", tmp_path / "file"
    )
    assert b"real-time factor" in done.stdout
    predicted = np.load(tmp_path / "file/predicted.npy")
    # The two frames behind the speech are of silence, and not read.
    assert len(predicted) == len(frames) - 1 - (len(samples) % 128 == 0)
    # As far as the log power of NumPy's and librosa's transform, in float32, differ.
    np.testing.assert_allclose(predicted, whole[: len(predicted)], atol=1e-4)
    heard, _ = read_audio(tmp_path / "file/predicted.wav")
    expected = to_int16(resynthesize(whole, samples))
    assert np.abs(expected).max() > 1000
    error = heard[: len(samples)].astype(int) - expected
    assert np.abs(error).max() <= 2  # Of 32768, rounded twice.

    streaming(
        tmp_path / "file/step.onnx",
        "-",
        "--out",
        tmp_path / "pipe",
        input=samples.tobytes(),
    )
    np.testing.assert_array_equal(np.load(tmp_path / "pipe/predicted.npy"), predicted)
