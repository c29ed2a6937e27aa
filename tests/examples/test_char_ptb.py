import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "char_ptb.py"


def run(*arguments):
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["enrnn", "lstm"])
def test_smoke(model, tmp_path):
    options = ["--model", model, "--smoke", "--out", tmp_path]
    done = run(*options)
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["settings"]["model"] == model
    assert record["settings"]["seed"] == 0
    figures = record["figures"]
    with open(tmp_path / "history.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["epoch"]) for row in rows] == [1, 2]
    bits = [float(row["val_bits_per_character"]) for row in rows]
    assert figures["validation bits per character"] == pytest.approx(min(bits))
    test = [float(row["test_bits_per_character"]) for row in rows]
    assert figures["lowest test bits per character"] == pytest.approx(min(test))
    # Of about 20 symbols; even two epochs tell the frequent ones.
    assert 0 < min(bits) < 4.4
    assert (tmp_path / "best.keras").is_file()
    assert (tmp_path / "curve.png").read_bytes()[:4] == b"\x89PNG"
    # Again, it only loads; with another setting it is refused.
    assert run(*options).returncode == 0
    again = run(*options, "--seed", 1)
    assert again.returncode != 0
    assert "Received: seed=1 not 0" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--smoke", "--units", "5"], "like 310/720"),
        (["--smoke", "--model", "lstm", "--units", "5/6"], "a positive integer"),
        (["--smoke", "--epochs", "0"], "--epochs must be positive"),
        (["--smoke", "--data-dir", "x"], "either --data-dir or --smoke"),
        ([], "either --data-dir or --smoke"),
        (["--smoke", "--model", "transformer"], "invalid choice"),
    ],
)
def test_bad_options(arguments, message, tmp_path, monkeypatch, capsys, char_ptb):
    monkeypatch.setattr(
        sys, "argv", ["char_ptb.py", "--out", str(tmp_path), *arguments]
    )
    with pytest.raises(SystemExit):
        char_ptb.parse()
    assert message in capsys.readouterr().err


def test_parameter_counts(char_ptb, monkeypatch, tmp_path):
    """ENRNN's as described in the dissertation; its text says about 1016k for both."""
    for model, expected in [("enrnn", 893_575), ("lstm", 1_016_450)]:
        argv = ["x", "--model", model, "--data-dir", "x", "--out", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", argv)
        _, row = char_ptb.parse()
        built = char_ptb.network(row, 50, 50)
        count = sum(v.shape.num_elements() for v in built.trainable_variables)
        assert count == expected
        layer = built.layers[-2].layer
        if model == "enrnn":
            signs = layer.cell.recurrent_signs.numpy()
            assert (signs == -1).sum() == 186
