import json
import sys

import keras
import numpy as np
import pytest

from experiments.options import TASKS, Settings
from experiments.runs import schedule
from keras_ortho.data_prep.pipeline import prepare
from tests.data_prep.corpora import write_corpus
from tests.examples.modules import run_example


def run(name, folder, *arguments):
    run_example(name.replace("-", "_"), "--out", folder, *arguments)
    return json.loads((folder / "run.json").read_text())


# What the others of images do differently, `tests/tasks` and `facts.py` hold; speech is
# synthesized for a smoke run, as for that of `timit.py`.
SLOW = {
    "mnist": pytest.mark.slow,
    "permuted-mnist": pytest.mark.slowest,
    "sequence-mnist": pytest.mark.slow,
    "pixel-cifar10": pytest.mark.slowest,
    "speech": pytest.mark.slowest,
}
EXAMPLES = [
    pytest.param(name, marks=SLOW.get(name, ()))
    for name in TASKS
    if name != "char-ptb"  # Which takes longer: tests/examples/test_char_ptb.py.
]


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_smoke(name, tmp_path):
    model = "enrnn" if name == "adding" else "scornn"
    record = run(name, tmp_path, "--smoke", "--model", model)
    assert (tmp_path / "curve.png").stat().st_size > 1000
    assert (tmp_path / "run" / "best.keras").exists()
    assert record["settings"]["seed"] == 0
    assert record["settings"]["rates"]["recurrent"] == "rmsprop 1e-4"
    assert len(record["curves"]["val_loss"]) == len(record["updates"]) == 2
    monitor = record["monitor"]
    best = min(record["curves"][f"val_{monitor}"])
    assert record["best_validation"][f"val_{monitor}"] == best
    # Two classes or ten, as many of each; not of the digits of a sum.
    assert record["baseline"] > 0
    if monitor == "error_rate" and name != "addition":
        assert record["baseline"] == pytest.approx(0.5 if name == "ucr" else 0.9)
    assert (len(record["controls"]) == 2) == (name == "noise-padded-cifar10")
    for control, rate in record["controls"].items():
        assert record["figures"][f"accuracy, {control}"] == 1 - rate


@pytest.mark.slow
def test_goes_on_to_the_same_result(tmp_path):
    small = "--smoke", "--model", "lstm"
    whole = run("adding", tmp_path / "whole", *small, "--epochs", "4")
    run("adding", tmp_path / "parts", *small, "--epochs", "2")
    parts = run("adding", tmp_path / "parts", *small, "--epochs", "4", "--resume")
    assert parts["curves"] == whole["curves"]


def test_a_preset_is_taken_but_for_what_is_given(tmp_path):
    small = [
        "--train-size",
        "100",
        "--valid-size",
        "50",
        "--test-size",
        "50",
        "--epochs",
        "1",
    ]
    record = run("adding", tmp_path, "--preset", "paper", *small, "--rate", "sgd 0.1")
    settings = record["settings"]
    assert settings["units"] == 170
    assert settings["arguments"] == {"negative_ones": 85}
    assert settings["rates"] == {"others": "sgd 0.1", "recurrent": "rmsprop 1e-4"}
    assert "Helfrich" in settings["source"]


@pytest.mark.slow
def test_a_run_does_not_go_on_with_records_that_were_made_anew(tmp_path, capsys):
    """With other speakers those of the test would have been trained on."""
    speakers = tuple(f"{sex}{letter * 3}0" for sex in "fm" for letter in "abcdef")
    write_corpus(tmp_path / "corpus", speakers, ("sx1", "sx2"))
    out, records = tmp_path / "out", tmp_path / "records"
    options = ["--data-dir", records, "--model", "lstm", "--units", "4"]
    prepare(tmp_path / "corpus", records, mode="speakers", seed=0)
    run("speech", out, *options, "--epochs", "1")
    prepare(tmp_path / "corpus", records, mode="speakers", seed=1)
    with pytest.raises(SystemExit):
        run("speech", out, *options, "--epochs", "2", "--resume")
    assert "contains a run with other settings" in capsys.readouterr().err
    prepare(tmp_path / "corpus", records, mode="speakers", seed=0)
    record = run("speech", out, *options, "--epochs", "2", "--resume")
    assert len(record["updates"]) == 2


@pytest.mark.parametrize(
    ("example", "module", "extra"),
    [
        ("adding", "matplotlib", "plot"),
        ("bnp", "matplotlib", "plot"),
        ("denoise", "pystoi", "speech"),
        ("speech", "librosa", "speech"),
        ("timit", "soundfile", "speech"),
    ],
)
def test_says_before_it_begins_what_is_missing(
    example, module, extra, tmp_path, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SystemExit):
        run(example, tmp_path / "out", "--smoke")
    assert f'pip install "keras-ortho[{extra}]"' in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("steps", "epochs", "wanted", "batches", "each", "times"),
    [
        (None, 3, None, 7, 7, 3),
        (None, 2, 100, 1_000, 100, 20),
        (None, 2, 800, 3_135, 783, 8),
        (None, 1, 600, 1_000, 500, 2),
        (None, 5, 9, 7, 8, 4),
        (None, 3, 500, 400, 600, 2),
        (150, None, 100, 400, 75, 2),
        (100, None, 30, 400, 33, 3),
        (None, 1, 9, 7, 7, 1),
        (1_600, None, 800, 3_135, 800, 2),
        (20, None, 800, 3_135, 20, 1),
        (20, None, None, 7, 6, 3),
    ],
)
def test_stretches_between_validations(steps, epochs, wanted, batches, each, times):
    settings = Settings(steps=steps, epochs=epochs, evaluate_every=wanted)
    assert schedule(settings, batches) == (each, times)


@pytest.mark.slow
def test_a_run_goes_on_with_its_own_data_and_backend(tmp_path, capsys, monkeypatch):
    rows = np.random.default_rng(0).normal(size=(24, 9)).round(3)
    rows[:, 0] = np.arange(24) % 2
    other = rows + np.eye(9)[8]
    parts = {"a": (rows, rows), "b": (other, other), "other-train": (other, rows)}
    for name, data in parts.items():
        for part, each in zip(("TRAIN", "TEST"), data, strict=True):
            path = tmp_path / name / "Waves" / f"Waves_{part}.tsv"
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savetxt(path, each, fmt="%g", delimiter="\t")
    options = ["--name", "Waves", "--model", "rnn", "--units", "3"]
    options += ["--evaluate-every", "1"]

    def go(data, epochs, *resume):
        given = "--data-dir", tmp_path / data, "--epochs", str(epochs), *resume
        return run("ucr", tmp_path / "out", *options, *given)

    go("a", 1)
    for other in ("b", "other-train"):
        with pytest.raises(SystemExit):
            go(other, 2, "--resume")
        assert "contains a run with other settings" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(keras.backend, "backend", lambda: "another")
        with pytest.raises(SystemExit):
            go("a", 2, "--resume")
    assert "backend=" in capsys.readouterr().err
    assert max(go("a", 2, "--resume")["updates"]) > 1
