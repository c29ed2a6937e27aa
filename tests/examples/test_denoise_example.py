"""The denoiser: what its network is, and the whole command, small."""

import csv
import json
import re

import keras
import numpy as np
import pytest

from experiments.layers import trained_parameters
from experiments.speech import layer_of, matched_rows
from keras_ortho.audio import istft, log_power, read_audio, stft, write_wav
from keras_ortho.metrics import si_sdr
from tests.examples.modules import load_example, run_example, start_example
from tests.modules import ROOT


@pytest.fixture(scope="module")
def denoise():
    return load_example("denoise")


def run(*arguments):
    done = start_example("denoise", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.mark.parametrize("model", ["scornn", "lstm"])
def test_network_is_a_gain_on_the_pipelines_transform(denoise, model):
    random = np.random.default_rng(0)
    mean, std = random.normal(-10, 5, 129), random.uniform(5, 15, 129)
    (row,) = matched_rows([model], 16)
    keras.utils.set_random_seed(0)
    network = denoise.denoiser(layer_of(row), mean, std)
    noisy = 0.1 * random.normal(size=(2, 3000)).astype("float32")
    found = network.predict(noisy, verbose=0)
    gain = network.get_layer("gain")
    for waveform, cleaned in zip(noisy, found, strict=True):
        spectrum = stft(waveform)
        gains = gain.predict(log_power(spectrum)[None], verbose=0)[0]
        assert np.ptp(gains) > 0.1
        expected = istft(gains * spectrum, length=3000)
        # Both in float32, where a bin of faint power costs the digits of its decibels.
        np.testing.assert_allclose(cleaned, expected, atol=1e-5)
    # Its inputs are standardized: frames of the mean, and one deviation above it.
    first = gain.layers[1]
    np.testing.assert_allclose(
        first(np.stack([mean, mean + std])), [[0] * 129, [1] * 129], atol=1e-5
    )


def test_the_rates(denoise):
    (row,) = matched_rows(["goru"], 16, rate=denoise.RATE)
    others, matrix = (f"adam {r} clipnorm 1 decay 0.97" for r in ("0.003", "0.0003"))
    assert row.rates == {"others": others, "recurrent": matrix}


@pytest.mark.parametrize("units", [100, 128])
def test_networks_have_as_many_parameters(denoise, units):
    counts = [
        trained_parameters(denoise.denoiser(layer_of(row), np.zeros(129), np.ones(129)))
        for row in matched_rows(["scornn", "goru", "goru-paper", "lstm"], units)
    ]
    assert max(counts) < 1.02 * min(counts)


@pytest.mark.parametrize(("to", "received"), [("b.wav", ""), ("a.wav", "/a.wav")])
def test_nothing_to_apply_or_what_it_would_overwrite(tmp_path, capsys, to, received):
    files = ["--apply", tmp_path / "a.wav", "--to", tmp_path / to]
    with pytest.raises(SystemExit):
        run_example("denoise", "--run", tmp_path, *files)
    assert f"Received: {tmp_path}{received}\n" in capsys.readouterr().err


def test_the_network_that_comes_along(tmp_path):
    sounds, to = ROOT / "docs" / "sounds", tmp_path / "cleaned.wav"
    run_example("denoise", "--apply", sounds / "pink-noisy.wav", "--to", to)
    paths = sounds / "clean.wav", sounds / "pink-wiener.wav", to
    clean, wiener, cleaned = (read_audio(path)[0] / 32768 for path in paths)
    assert si_sdr(cleaned, clean) > si_sdr(wiener, clean) + 2


@pytest.mark.slow
def test_the_whole_command(tmp_path):
    out = tmp_path / "out"
    options = ["--smoke", "--out", out, "--seeds", 2]
    printed, errors = run(*options)
    assert "Scoring LSTM (6/6)" in errors
    results = json.loads((out / "results.json").read_text())
    assert results["data"]["utterances"] == {"train": 8, "valid": 2, "test": 2}
    assert results["data"]["mixtures"] == 2 * 8 * 2
    assert [len(runs) for runs in results["models"].values()] == [2, 2]
    with open(out / "scores.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    noises = ["white", "pink", "hum", "clicks", "babble", "reverberation"]
    noises += ["wind", "siren"]
    systems = [("noisy", ""), ("Wiener filter", "")]
    systems += [
        (model, seed) for model in ("GORU of the paper", "LSTM") for seed in "01"
    ]
    assert [tuple(line.values())[:4] for line in lines] == [
        (*system, noise, snr)
        for system in systems
        for noise in noises
        for snr in ("0", "10")
    ]
    for line in lines:
        assert line.pop("mixtures") == "2"
        counts = [line.pop(name) for name in list(line) if "unscored" in name]
        assert counts == ["0"] * 4
        assert np.isfinite([float(value) for value in list(line.values())[4:]]).all()
    # Noise and speech correlate by chance, by a percent or two of 20 000 samples.
    assert float(lines[0]["si_sdr"]) == pytest.approx(0, abs=0.5)
    assert float(lines[1]["si_sdr"]) == pytest.approx(10, abs=0.5)
    text = (out / "results.md").read_text()
    assert text in printed
    assert re.search(r"\| GORU of the paper \| -?\d+\.\d ± \d\.\d \|", text)
    for name in ("curves", "curves_stoi", "curves_pesq", "spectrograms"):
        assert (out / f"{name}.png").stat().st_size > 10_000
    # Of an utterance: 8 noises, each before and after three denoisers, and clean.
    assert len(list((out / "wav").iterdir())) == 8 * 5
    for model in ("goru-paper", "lstm"):
        for seed in (0, 1):
            folder = out / model / f"seed-{seed}"
            assert (folder / "best.keras").is_file()
            gain = keras.saving.load_model(folder / "gain.keras")
            assert gain.output_shape == (None, None, 129)

    # Again: nothing is trained, and the scores are the same.
    kept = ("scores.csv", "results.md", "goru-paper/seed-0/history.csv")
    before = [(out / name).read_bytes() for name in kept]
    run(*options)
    assert [(out / name).read_bytes() for name in kept] == before

    # On a file of one's own, at another rate, by the one network that there is so far.
    for name in ("results.json", "goru-paper/seed-1", "lstm"):
        (out / name).rename(tmp_path / name.replace("/", "-"))
    sound = 0.2 * np.random.default_rng(0).normal(size=16000)
    write_wav(tmp_path / "noisy.wav", sound, 16000)
    files = ["--apply", tmp_path / "noisy.wav", "--to", tmp_path / "clean.wav"]
    assert f"Cleaned by {out / 'goru-paper' / 'seed-0'}" in run("--run", out, *files)[0]
    cleaned, rate = read_audio(tmp_path / "clean.wav")
    assert (rate, len(cleaned)) == (8000, 8000)
    assert 0 < np.std(cleaned / 32768) < 0.2
