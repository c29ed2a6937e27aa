import csv
import json

import pytest

from tests.examples.modules import run_example


@pytest.mark.slow
def test_smoke(tmp_path):
    options = ["--smoke", "--out", tmp_path]
    run_example("bnp", *options)
    record = json.loads((tmp_path / "run.json").read_text())
    kinds, rates = ("plain", "batch-norm", "bnp"), (0.01, 0.1)
    assert [(r["batch_size"], r["model"], r["rate"]) for r in record["results"]] == [
        (size, kind, rate) for size in (60, 6) for kind in kinds for rate in rates
    ]
    for result in record["results"]:
        name = f"{result['model']}-{result['batch_size']}-{result['rate']:g}"
        with open(tmp_path / name / "history.csv", newline="") as file:
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
    table = (tmp_path / "table.md").read_text().splitlines()
    assert len(table) == 2 + 6
    assert len({line.count("|") for line in table}) == 1
    # Again, it only loads.
    run_example("bnp", *options)
    assert (
        json.loads((tmp_path / "run.json").read_text())["results"]
        == (record["results"])
    )
