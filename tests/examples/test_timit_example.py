import csv
import json
import math
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from experiments import speech
from experiments.layers import trained_parameters
from experiments.linear_prediction import LinearPrediction
from tests.examples.modules import load_example, start_example

LADDER = ["mean frame", "previous frame", "linear, 1 frame", "linear, 2 frames"]


@pytest.fixture(scope="module")
def timit():
    return load_example("timit")


@pytest.mark.slow
def test_smoke(tmp_path):
    models = ["scornn", "enrnn", "lstm", "feed-forward"]
    options = ["--smoke", "--models", *models, "--out", tmp_path]
    options += ["--best-by", "pesq"]
    done = start_example("timit", *options)
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "results.json").read_text())
    assert record["settings"]["seed"] == 0
    assert record["settings"]["units"] == [12]
    assert record["keras_ortho"]
    assert record["data"]["utterances"] == {"train": 3, "valid": 1, "test": 1}
    results = record["results"]
    networks = ["scoRNN", "ENRNN", "LSTM", "no recurrence"]
    assert list(results) == [*LADDER, *networks]
    lines = (tmp_path / "results.md").read_text().splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == [f"| {n}" for n in results]
    for name, row in results.items():
        figures = [v for v in row.values() if isinstance(v, float)]
        # Three errors, three ratios, STOI, and PESQ twice; a penalty.
        assert len(figures) == 9 + name.startswith("linear")
        assert all(map(math.isfinite, figures))
        assert set(row["utterances_without_a_score"].values()) == {0}
        assert row["utterances"] == 1
        wav = f"*_{name.replace(' ', '-')}.wav"
        assert len(list((tmp_path / "wav").glob(wav))) == 1
    for model in models:
        with open(tmp_path / model / "history.csv", newline="") as file:
            history = list(csv.DictReader(file))
        assert [int(row["epoch"]) for row in history] == [1, 2]
        assert (tmp_path / model / "best.keras").is_file()
    # The best of the last model's epochs, by PESQ.
    best = max(history, key=lambda row: float(row["val_pesq"]))
    found = results["no recurrence"]
    assert found["epoch"] == int(best["epoch"])
    assert found["validation_valid_frame_mse"] == float(best["val_valid_frame_mse"])
    for picture in ("curves", "curves_stoi", "curves_pesq", "spectrograms"):
        assert (tmp_path / f"{picture}.png").read_bytes()[:4] == b"\x89PNG"
    assert "Scoring mean frame (1/8)" in done.stderr
    # Again, it only loads; with another seed it is refused.
    before = (tmp_path / "lstm" / "history.csv").read_text()  # Has the seconds.
    assert start_example("timit", *options).returncode == 0
    assert (tmp_path / "lstm" / "history.csv").read_text() == before
    again = json.loads((tmp_path / "results.json").read_text())
    assert again["results"] == results
    refused = start_example("timit", *options, "--seed", 1)
    assert refused.returncode != 0
    assert "Received: seed=1 (the run has 0)" in refused.stderr


def test_the_table_says_what_is_not_in_a_mean():
    row = dict.fromkeys(speech.COLUMNS, 1.23456) | {"parameters": 1234}
    row |= {"utterances": 16, "stoi": float("nan")}
    row["utterances_without_a_score"] = {"segmental_snr": 0, "pesq_raw": 3, "stoi": 16}
    titles, rows = speech.mean_table([[{"results": {"LSTM": row}}]])
    assert titles[:3] == ["test", "parameters", "validation MSE dB²"]
    assert rows == [
        [
            *("LSTM", "1,234", "1.235", "1.235", "1.235", "1.235"),
            *("nan (16 of 16 not scored)", "1.235", "1.235 (3 of 16 not scored)"),
        ]
    ]


def test_presets_by_size(timit):
    begin = ["--out", "x", "--records", "y", "--preset", "paper", "--models"]
    _, rows = timit.parse([*begin, "scornn", "enrnn", "lstm"])
    assert [row.units for row in rows] == [224, (374, 94), 84]
    assert [row.epochs for row in rows] == [200, 300, 200]
    sizes = ["--units", "425", "374/94", "158"]
    options, rows = timit.parse([*begin, "scornn", "enrnn", "lstm", *sizes])
    assert [row.units for row in rows] == [425, (374, 94), 158]
    assert options.batch_size == 28
    assert rows[2].arguments == {"forget_bias": -4.0}


def test_the_raw_network_is_that_of_helfrich_2018(timit):
    begin = ["--out", "x", "--records", "y", "--raw"]
    options, (scornn, lstm) = timit.parse(begin)
    assert (scornn.units, lstm.units, options.batch_size) == (224, 84, 28)
    assert options.epochs == 200
    data = SimpleNamespace(mean=np.arange(129.0))
    model = timit.of_decibels(speech.layer_of(scornn), data)
    assert trained_parameters(model) == 83_121
    assert (model.layers[0].cell.recurrent_signs.numpy() == -1).sum() == 22
    np.testing.assert_array_equal(model.layers[1].bias, np.arange(129))
    assert scornn.rates == {"others": "adam 0.001", "recurrent": "rmsprop 0.001"}
    assert lstm.rates == {"others": "adam 0.001 clip 1"}


def predictor(frames):
    random = np.random.default_rng(0)
    return LinearPrediction(
        random.normal(0, 0.1, (frames, 129, 129)),
        random.normal(size=129),
        random.normal(-30, 5, 129),
        random.uniform(5, 20, 129),
        0.1,
    )


def network(row, linear):
    return speech.correction(speech.layer_of(row), linear)


def test_the_network_starts_as_the_linear_prediction():
    linear = predictor(2)
    (row,) = speech.matched_rows(["scornn"], 12, 128)
    model = network(row, linear)
    x = np.random.default_rng(1).normal(-30, 15, (2, 7, 129)).astype("float32")
    # Sums of 258 products of about 0.1, and of numbers near 50 in dB.
    found = model.predict(x, verbose=0)
    np.testing.assert_allclose(found, linear(x), atol=300 * 50 * 2**-23)


@pytest.mark.parametrize("model", ["scornn", "feed-forward"])
def test_only_recurrence_sees_more_than_two_frames(model):
    keras.utils.set_random_seed(0)
    (row,) = speech.matched_rows([model], 12, 128)
    found = network(row, predictor(2))
    found.layers[-3].set_weights(
        [np.full((128, 129), 0.1, "float32"), np.zeros(129, "float32")]
    )
    x = np.random.default_rng(1).normal(-30, 15, (1, 7, 129)).astype("float32")
    changed = x.copy()
    changed[:, 2] += 20
    moved = np.abs(found.predict(changed, verbose=0) - found.predict(x, verbose=0))
    steps = (moved.max(axis=(0, 2)) > 1e-4).tolist()
    later = model == "scornn"
    assert steps == [False, False, True, True, later, later, later]


def test_all_networks_have_as_many_parameters(timit):
    options, rows = timit.parse(["--out", "x", "--records", "y"])
    assert [row.model for row in rows] == [
        *("feed-forward", "lstm", "gru", "scornn", "enrnn")
    ]
    assert (options.batch_size, options.epochs) == (8, 40)
    counts = {row.model: trained_parameters(network(row, predictor(2))) for row in rows}
    for model, count in counts.items():
        assert count == pytest.approx(counts["scornn"], rel=0.01), model


@pytest.mark.parametrize("raw", [False, True])
def test_the_rate_of_the_recurrent_matrix(raw):
    models = ["enrnn", "full-urnn", "ornn", "gru", "restricted-urnn"]
    usual = [row.rates for row in speech.matched_rows(models, 8, raw=raw)]
    more = "" if raw else " clipnorm 1 decay 0.97"
    others, adam = f"adam 0.001{more}", f"adam 0.0001{more}"
    assert usual == [
        {"others": others, "recurrent": adam},
        {"others": others, "unitary": "stiefel 0.001"},
        {"others": others, "recurrent": "rmsprop 0.001" if raw else adam},
        {"others": "adam 0.001 clip 1" if raw else others},
        # Its matrix has phases alone.
        {"others": others, "recurrent": "rmsprop 0.001" if raw else adam},
    ]
