import csv
import json

import pytest

from tests.examples.modules import run_example


def run(folder, *arguments):
    run_example("char_ptb", "--out", folder, *arguments)
    return json.loads((folder / "run.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("model", ["enrnn", "lstm"])
def test_smoke(model, tmp_path):
    record = run(tmp_path, "--model", model, "--smoke")
    assert record["settings"]["task"] == "char-ptb"
    assert record["settings"]["model"] == model
    figures = record["figures"]
    with open(tmp_path / "run" / "history.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["epoch"]) for row in rows] == [1, 2, 3, 4, 5, 6]
    bits = [float(row["val_bits_per_character"]) for row in rows]
    assert figures["best validation bits per character"] == pytest.approx(min(bits))
    test = [float(row["test_bits_per_character"]) for row in rows]
    assert figures["best test bits per character"] == pytest.approx(min(test))
    # What the best weights are worth, measured again, state and all.
    there = test[bits.index(min(bits))]
    assert figures["test bits per character there"] == pytest.approx(there, rel=1e-5)
    # Of about 20 symbols; even two epochs tell the frequent ones.
    assert 0 < min(bits) < 4.4
    assert (tmp_path / "run" / "best.keras").is_file()
    assert (tmp_path / "curve.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.slow
def test_goes_on_to_the_same_result(tmp_path):
    small = "--smoke", "--model", "rnn"
    whole = run(tmp_path / "whole", *small, "--epochs", "2")
    run(tmp_path / "parts", *small, "--epochs", "1")
    parts = run(tmp_path / "parts", *small, "--epochs", "2", "--resume")
    assert parts["curves"] == whole["curves"]
    assert len(parts["updates"]) > 2
