import json
import shutil
import sys

import pytest

from keras_ortho.experiments.catalog import EXPERIMENTS
from keras_ortho.experiments.command import main, make_parser, settle
from keras_ortho.experiments.report import run_record
from keras_ortho.experiments.reproduction import SETS, select, write_report
from keras_ortho.experiments.tables import SECTIONS
from tests.examples.modules import load_example


def test_each_set_holds_the_one_before():
    quick, standard, full = ({run.name for run in select(each)} for each in SETS)
    assert quick < standard < full
    names = [run.name for run in select("full")]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_arguments_are_those_of_the_example(section, tmp_path, monkeypatch):
    name = section.script.replace("_", "-")
    for run in section.runs():
        arguments = ["--out", str(tmp_path), *run.arguments]
        if run.data:
            arguments += [run.data_option, "data"]
        if name in EXPERIMENTS:
            options = make_parser(EXPERIMENTS[name], "").parse_args(arguments)
            settle(options, EXPERIMENTS[name])
            assert run.name.startswith(f"{section.name}-{options.model}")
        else:
            example = load_example(section.script)
            monkeypatch.setattr(sys, "argv", [section.script, *arguments])
            example.parse()


def test_prefixes_choose():
    names = [run.name for run in select("standard", ["adding-t-750-l"])]
    assert names == ["adding-t-750-lstm"]
    with pytest.raises(ValueError, match="`prefixes` must begin"):
        select("quick", ["chess"])
    with pytest.raises(ValueError, match="`chosen` must be one of"):
        select("all")


def test_report(tmp_path):
    """One real record in the place of another: the report only reads it."""
    main("adding", "", ["--out", str(tmp_path / "run"), "--smoke"])
    results = tmp_path / "results"
    results.mkdir()
    section = SECTIONS[0]
    shutil.copyfile(tmp_path / "run/run.json", results / f"{section.name}-scornn.json")
    (results / f"{section.name}.md").write_text("As expected.\n")
    write_report(tmp_path)
    record = json.loads((tmp_path / "run/run.json").read_text())
    text = (tmp_path / "RESULTS.md").read_text()
    assert f"## {section.title}\n" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| scoRNN")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1:4] == ["8", f"{record['parameters']:,}", "40"]
    figures = [float(cell) for cell in cells[4 : 4 + len(record["figures"])]]
    assert figures == pytest.approx(list(record["figures"].values()), rel=5e-4)
    assert "As expected." in text
    assert f"commit {record['commit']}" in text
    assert (results / f"{section.name}.png").stat().st_size > 1000
    assert "Copying" not in text


def test_report_on_an_example_that_compares(tmp_path):
    (section,) = (s for s in SECTIONS if s.title == "BNP on CIFAR-10")
    results = tmp_path / "results"
    results.mkdir()
    (run,) = section.runs()
    record = run_record({"seed": 5})
    for file, name in run.products.items():
        (results / name).write_text({"run.json": json.dumps(record)}.get(file, file))
    assert list(run.products.values())[-1] == f"{section.name}.json"
    (results / f"{section.name}-table.md").write_text("| network |\n|---|\n| x |\n")
    write_report(tmp_path)
    text = (tmp_path / "RESULTS.md").read_text()
    assert "## BNP on CIFAR-10\n\n| network |\n|---|\n| x |\n" in text
    assert f"(results/{section.name}-loss-60.png)" in text
    assert f"(Seed 5; commit {record['commit']}" in text


def test_report_with_models_side_by_side(tmp_path):
    (section,) = (s for s in SECTIONS if s.title == "UCR")
    (tmp_path / "results").mkdir()
    for seed, accuracy in enumerate((0.7, 0.8, 0.75)):
        record = run_record({"seed": seed})
        record["figures"] = {
            "test accuracy there": accuracy,
            "best test accuracy": accuracy + 0.125,
        }
        path = tmp_path / "results" / f"{section.record('svdrnn CBF', seed)}.json"
        path.write_text(json.dumps(record))
    write_report(tmp_path)
    lines = (tmp_path / "RESULTS.md").read_text().splitlines()
    head = next(line for line in lines if line.startswith("|")).split(" | ")
    rows = [line.split(" | ") for line in lines if line.startswith("| CBF")]
    for row, mean in zip(rows, ("0.75", "0.875"), strict=True):
        cells = dict(zip(head, row, strict=True))
        assert cells["svdRNN, published |"] == f"{mean}, 0.948 |"
        assert cells["RNN, published"] == ", 0.702"
    assert "The best test accuracy of all epochs:" in lines
    assert any("Means of the seeds 0, 1, 2" in line for line in lines)
