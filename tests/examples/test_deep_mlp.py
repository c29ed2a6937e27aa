import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "deep_mlp.py"


def run(*arguments):
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.slow
def test_smoke(tmp_path):
    options = ["--smoke", "--layers", 1, 2, "--out", tmp_path]
    done = run(*options)
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["settings"]["width"] == 8
    results = record["results"]
    assert [(r["layers"], r["model"]) for r in results] == [
        (layers, model)
        for layers in (1, 2)
        for model in ("mlp", "resnet", "svdmlp", "svdresnet")
    ]
    for result in results:
        folder = tmp_path / f"{result['model']}-{result['layers']}"
        with open(folder / "history.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        errors = [float(row["val_error_rate"]) for row in rows]
        assert result["validation_accuracy"] == pytest.approx(1 - min(errors))
        assert result["epoch"] == 1 + errors.index(min(errors))
        assert (folder / "best.keras").is_file()
    for name in ("loss", "accuracy", "depth"):
        assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
    table = (tmp_path / "table.md").read_text()
    assert len(table.splitlines()) == 2 + len(results)
    assert run(*options).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--smoke", "--data-dir", "x"], "no --data-dir"),
        (["--models", "cnn"], "invalid choice"),
    ],
)
def test_bad_options(arguments, message, tmp_path, monkeypatch, capsys, deep_mlp):
    argv = ["deep_mlp.py", "--out", str(tmp_path), *arguments]
    monkeypatch.setattr(sys, "argv", argv)
    with pytest.raises(SystemExit):
        deep_mlp.parse()
    assert message in capsys.readouterr().err
