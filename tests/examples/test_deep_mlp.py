import csv
import json

import numpy as np
import pytest

from experiments import smoke
from tests.examples.modules import run_example


@pytest.mark.slow
def test_smoke(tmp_path, capsys):
    options = ["--smoke", "--layers", 1, 2, "--out", tmp_path]
    run_example("deep_mlp", *options)
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["settings"]["width"] == 8
    results = record["results"]
    assert [(r["layers"], r["model"]) for r in results] == [(0, "linear")] + [
        (layers, model)
        for layers in (1, 2)
        for model in ("mlp", "resnet", "svdmlp", "svdresnet")
    ]
    # Of 28 x 28 pixels, with biases.
    assert results[0]["parameters"] == 7850
    for result in results:
        folder = tmp_path / f"{result['model']}-{result['layers']}"
        with open(folder / "history.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        errors = [float(row["val_error_rate"]) for row in rows]
        assert result["validation_accuracy"] == pytest.approx(1 - min(errors))
        assert result["epoch"] == len(errors) - errors[::-1].index(min(errors))
        assert (folder / "best.keras").is_file()
    for name in ("loss", "accuracy"):
        assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
    table = (tmp_path / "table.md").read_text().splitlines()
    assert len(table) == 2 + len(results)
    assert len({line.count("|") for line in table}) == 1
    # Again, it only loads; with another setting it is refused.
    run_example("deep_mlp", *options)
    with pytest.raises(SystemExit):
        run_example("deep_mlp", *options, "--width", 9)
    assert "Received: width=9 (the run has 8)" in capsys.readouterr().err


def test_a_network_does_not_go_on_with_other_data(tmp_path, capsys):
    for name in "ab":
        smoke.mnist(tmp_path / name)
    with np.load(tmp_path / "b" / "mnist.npz") as file:
        arrays = dict(file)
    arrays["y_train"] = arrays["y_train"][::-1]
    np.savez(tmp_path / "b" / "mnist.npz", **arrays)
    options = ["--models", "linear", "--valid-size", 20, "--epochs", 1]
    options += ["--out", tmp_path / "out"]
    run_example("deep_mlp", *options, "--data-dir", tmp_path / "a")
    before = (tmp_path / "out" / "run.json").read_bytes()
    with pytest.raises(SystemExit):
        run_example("deep_mlp", *options, "--data-dir", tmp_path / "b")
    assert "Received: data=" in capsys.readouterr().err
    assert (tmp_path / "out" / "run.json").read_bytes() == before
