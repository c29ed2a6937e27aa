"""A trained network, frame by frame in ONNX Runtime, is the network."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_ortho import ScoRNN
from keras_ortho.audio import istft, log_power, read_audio, stft, write_wav
from keras_ortho.audio.samples import to_int16
from tests.examples.modules import run_example

pytest.importorskip("onnxruntime", reason="needs the extra export")
pytest.importorskip("onnx", reason="needs the extra export")
pytest.importorskip("soundfile", reason="needs the extra speech")

ROOT = Path(__file__).parents[2]


def command_of(*arguments):
    return [sys.executable, "examples/streaming.py", *map(str, arguments)]


def streaming(*arguments, **kwargs):
    command = command_of(*arguments)
    return subprocess.run(command, cwd=ROOT, capture_output=True, **kwargs)


@pytest.mark.slow
def test_a_network_as_if_from_a_microphone(tmp_path):
    random = np.random.default_rng(0)
    sound = 0.1 * random.normal(size=3000) * np.sin(np.arange(3000) / 300)
    write_wav(tmp_path / "speech.wav", sound, 8000)
    samples, _ = read_audio(tmp_path / "speech.wav")
    model = keras.Sequential(
        [
            keras.Input((None, 129)),
            keras.layers.Rescaling(np.full(129, 0.5), np.full(129, 10.0)),
            ScoRNN(16, return_sequences=True, trainable_initial_state=True),
            keras.layers.Dense(129, activation="sigmoid"),
        ]
    )
    model.save(tmp_path / "gain.keras")
    spectrum = stft(samples / 32768)
    whole = model.predict(log_power(spectrum)[None], verbose=0)[0]

    done = streaming(
        tmp_path / "gain.keras", tmp_path / "speech.wav", "--out", tmp_path / "file"
    )
    assert done.returncode == 0, done.stderr
    assert b"real-time factor" in done.stdout
    gains = np.load(tmp_path / "file/gains.npy")
    # The two frames behind the speech are of silence, and not read.
    assert len(gains) == len(spectrum) - 1 - (len(samples) % 128 == 0)
    assert np.ptp(gains) > 0.5
    # As far as the log power of NumPy's and librosa's transform, in float32, differ.
    np.testing.assert_allclose(gains, whole[: len(gains)], atol=1e-4)
    heard, _ = read_audio(tmp_path / "file/clean.wav")
    expected = to_int16(istft(whole * spectrum, length=len(samples)))
    assert np.abs(expected).max() > 1000
    error = heard[: len(samples)].astype(int) - expected
    # Of 32768, rounded twice, and as far as the gains differ.
    assert np.abs(error).max() <= 3

    piped = tmp_path / "file/step.onnx", "-", "--out", tmp_path / "pipe"
    done = streaming(*piped, input=samples.tobytes())
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "pipe/gains.npy"), gains)
    # Ctrl-C, once more than the pipe holds has been read.
    live = command_of(*piped[:2], "--out", tmp_path / "live")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(live, cwd=ROOT, **pipes) as process:
        process.stdin.write(samples.tobytes() * (1 + 2**18 // samples.nbytes))
        process.send_signal(signal.SIGINT)
        assert b"real-time factor" in process.communicate()[0]
    same = 1 + len(samples) // 128
    heard = np.load(tmp_path / "live/gains.npy")
    np.testing.assert_array_equal(heard[:same], gains[:same])
    # A layer that reads the future has no step, and the program says so.
    inputs = keras.Input((None, 129))
    flipped = keras.layers.Bidirectional(ScoRNN(4, return_sequences=True))(inputs)
    keras.Model(inputs, flipped).save(tmp_path / "future.keras")
    done = streaming(
        tmp_path / "future.keras", tmp_path / "speech.wav", "--out", tmp_path / "none"
    )
    assert done.returncode == 2
    last = done.stderr.decode().splitlines()[-1]
    assert re.match("streaming.py: .*bidirectional.*Received: ", last)


@pytest.mark.parametrize("model", ["none.onnx", "none.keras"])
def test_no_network(model, tmp_path, capsys):
    with pytest.raises(SystemExit):
        run_example("streaming", tmp_path / model, "-", "--out", tmp_path / "out")
    assert str(tmp_path / "none") in capsys.readouterr().err
