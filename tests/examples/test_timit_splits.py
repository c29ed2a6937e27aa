import json
import statistics
import sys
from pathlib import Path

import numpy as np
import pytest

from experiments.records import run_record
from experiments.speech import COLUMNS
from keras_ortho.files import read_json, write_json
from tests.data_prep.corpora import write_corpus
from tests.examples.modules import load_example

LINEAR, NETWORK = "linear, 2 frames", "scoRNN"


@pytest.fixture
def splits():
    return load_example("timit_splits")


def error(name, split, seed, valid):
    """An error that differs in each run; scoRNN's is greater in two of four."""
    noise = 0.0 if name == LINEAR else [[-0.5, 0.25], [-1.0, 0.75]][split][seed]
    return 40.0 + 5 * split + 3 * valid + noise


@pytest.fixture
def commands(splits, monkeypatch):
    """The commands, of which those that train leave their record."""
    found = []

    def run_python(arguments):
        found.append(arguments)
        if not arguments[0].endswith("timit.py"):
            return
        split = int(arguments[2].split("split-")[1][0])
        seed = int(arguments[arguments.index("--seed") + 1])
        record = run_record({"seed": seed, "epochs": 3})
        results = {
            name: dict.fromkeys(COLUMNS, 0.5)
            | {
                "parameters": 7,
                "utterances": 10,
                "utterances_without_a_score": {"stoi": int(name == NETWORK), "pesq": 0},
                "validation_valid_frame_mse": error(name, split, seed, True),
                "valid_frame_mse": error(name, split, seed, False),
            }
            for name in (LINEAR, NETWORK)
        }
        curves = {NETWORK: [60.0 + split, 50.0 + seed, 45.0]}
        record |= {"data": {}, "results": results, "curves": curves}
        out = arguments[arguments.index("--out") + 1]
        Path(out).mkdir(parents=True)
        write_json(Path(out, "results.json"), record)

    monkeypatch.setattr(splits, "run_python", run_python)
    return found


def start(splits, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["timit_splits.py", *map(str, arguments)])
    splits.main()


def test_means_and_deviations(splits, commands, tmp_path, monkeypatch):
    given = ["--corpus", tmp_path, "--out", tmp_path, "--splits", 2, "--seeds", 2]
    start(splits, monkeypatch, *given, "--models", "scornn")
    prepared = [c for c in commands if c[0] == "-m"]
    assert [c[c.index("--seed") + 1] for c in prepared] == ["0", "1"]
    assert {c[c.index("--splits") + 1] for c in prepared} == {"speakers"}
    trained = [c for c in commands if c[0] != "-m"]
    assert len(trained) == 4
    assert all(c[-2:] == ["--models", "scornn"] for c in trained)
    lines = (tmp_path / "results.md").read_text().splitlines()
    # Of each seed the mean over the splits: 42.5 - 0.75 and 42.5 + 0.5.
    assert lines[3].split(" | ")[:4] == [
        *("| scoRNN", "7"),
        f"{45.5 - 0.125:.4g} ± {statistics.stdev([-0.75, 0.5]):.2g}",
        f"{42.5 - 0.125:.4g} ± {statistics.stdev([-0.75, 0.5]):.2g}",
    ]
    assert lines[2].startswith(f"| {LINEAR} | 7 | 45.5 | 42.5 | 0.5 |")
    assert "| 0.5 (4 of 40 not scored) |" in lines[3]
    assert "not scored" not in lines[2]
    assert lines[7] == f"| {LINEAR} | 43 | 40 | 48 | 45 | 0 of 4 |"
    first = f"{-0.125 + 40:.4g} ± {statistics.stdev([-0.5, 0.25]):.2g}"
    cells = lines[8].split(" | ")
    assert cells[2] == first
    assert cells[-1] == "2 of 4 |"
    record = read_json(tmp_path / "results.json")
    assert (record["settings"]["seeds"], record["settings"]["splits"]) == (2, 2)
    assert [(run["split"], run["seed"]) for run in record["runs"]] == [
        *((0, 0), (0, 1), (1, 0), (1, 1))
    ]
    assert record["runs"][3]["results"][NETWORK]["valid_frame_mse"] == 45.75
    assert (tmp_path / "curves.png").read_bytes()[:4] == b"\x89PNG"


def test_curves_are_less_that_of_linear_prediction(
    splits, commands, tmp_path, monkeypatch
):
    drawn = []
    monkeypatch.setattr(splits, "plot_curves", lambda *a, **k: drawn.append((a, k)))
    given = ["--corpus", tmp_path, "--out", tmp_path, "--splits", 2, "--seeds", 2]
    start(splits, monkeypatch, *given)
    ((_, curves), options) = drawn[0]
    # Less 43 and 48.
    np.testing.assert_allclose(curves[NETWORK], [15.0, 5.0, -0.5])
    low, high = options["bands"][NETWORK]
    np.testing.assert_allclose(low, [13, 2, -3])
    np.testing.assert_allclose(high, [17, 8, 2])


def test_one_split_is_the_corpus_s_own(splits, commands, tmp_path, monkeypatch):
    given = ["--corpus", tmp_path, "--out", tmp_path, "--seeds", 1, "--seed", 1]
    start(splits, monkeypatch, *given)
    (prepared, trained) = commands
    assert prepared[prepared.index("--splits") + 1] == "auto"
    assert trained[trained.index("--seed") + 1] == "1"


@pytest.mark.slow
def test_a_small_corpus(splits, tmp_path, monkeypatch):
    speakers = tuple(f"{sex}{letter * 3}0" for sex in "fm" for letter in "abc")
    write_corpus(tmp_path / "corpus", speakers, ("sx1", "sx2"))
    out = tmp_path / "out"
    given = ["--corpus", tmp_path / "corpus", "--out", out, "--splits", 2]
    given += ["--seeds", 1, "--models", "scornn", "--units", 4, "--epochs", 2]
    start(splits, monkeypatch, *given)
    record = json.loads((out / "results.json").read_text())
    assert len(record["runs"]) == 2
    assert "scoRNN" in record["runs"][0]["results"]
