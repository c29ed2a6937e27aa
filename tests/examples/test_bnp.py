import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "bnp.py"


def run(*arguments):
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.slow
def test_smoke(tmp_path):
    options = ["--smoke", "--out", tmp_path]
    done = run(*options)
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "run.json").read_text())
    kinds, rates = ("plain", "batch-norm", "bnp"), (0.01, 0.1)
    assert [(r["batch_size"], r["model"], r["rate"]) for r in record["results"]] == [
        (size, kind, rate) for size in (60, 6) for kind in kinds for rate in rates
    ]
    for result in record["results"]:
        folder = tmp_path / (
            f"{result['model']}-{result['batch_size']}-{result['rate']:g}"
        )
        with open(folder / "history.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        errors = [float(row["val_error_rate"]) for row in rows]
        assert result["validation_accuracy"] == pytest.approx(1 - min(errors))
        losses = [float(row["loss"]) for row in rows]
        assert result["training_loss"] == pytest.approx(losses)
    assert len(record["chosen"]) == 6
    for chosen in record["chosen"]:
        rivals = [
            r["validation_accuracy"]
            for r in record["results"]
            if (r["model"], r["batch_size"]) == (chosen["model"], chosen["batch_size"])
        ]
        assert chosen["validation_accuracy"] == max(rivals)
    for name in ("loss-60", "accuracy-60", "loss-6", "accuracy-6"):
        assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
    assert len((tmp_path / "table.md").read_text().splitlines()) == 2 + 6
    assert run(*options).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--smoke", "--data-dir", "x"], "no --data-dir"),
        (["--models", "cnn"], "invalid choice"),
    ],
)
def test_bad_options(arguments, message, tmp_path, monkeypatch, capsys, bnp):
    monkeypatch.setattr(sys, "argv", ["bnp.py", "--out", str(tmp_path), *arguments])
    with pytest.raises(SystemExit):
        bnp.parse()
    assert message in capsys.readouterr().err
