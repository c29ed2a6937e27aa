import json
import sys

import pytest

from experiments.catalog import SECTIONS, SETS, select
from experiments.options import TASKS, read_task
from experiments.records import add_record, run_record
from experiments.report import write_report
from tests.examples.modules import load_example, run_example

(UCR,) = (section for section in SECTIONS if section.data_sets)


def test_each_set_holds_the_one_before():
    quick, standard, full = ({run.name for run in select(each)} for each in SETS)
    assert quick < standard < full
    names = [run.name for run in select("full")]
    assert len(names) == len(set(names))


def _differing(runs):
    """One of those that differ in their seed or the name of their data alone."""
    found = {}
    for run in runs:
        given = zip([None, *run.arguments], run.arguments, strict=False)
        own = tuple(a for option, a in given if option not in ("--name", "--seed"))
        found.setdefault(own, run)
    return list(found.values())


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_arguments_are_those_of_the_example(section, tmp_path, monkeypatch):
    name = section.example.replace("_", "-")
    for run in _differing(section.runs()):
        arguments = ["--out", str(tmp_path), *run.arguments]
        if section.data:
            arguments += [section.data_option, "data"]
        if name in TASKS:
            settings = read_task(name, "", arguments)
            assert run.name.startswith(f"{section.name}-{settings.model}")
        else:
            example = load_example(section.example)
            monkeypatch.setattr(sys, "argv", [section.example, *arguments])
            example.parse()


def test_report(tmp_path):
    """One real record in the place of another: the report only reads it."""
    run_example("adding", "--out", tmp_path / "run", "--smoke")
    results = tmp_path / "results"
    results.mkdir()
    section = SECTIONS[0]
    record = json.loads((tmp_path / "run/run.json").read_text())
    add_record(results / section.records, f"{section.name}-scornn", record)
    notes = f"## Else\n\nNo.\n\n## {section.title}\n\nAs expected.\n"
    (results / "notes.md").write_text(notes)
    write_report(tmp_path)
    text = (tmp_path / "RESULTS.md").read_text()
    assert f"## {section.title}\n" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| scoRNN | ")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1:4] == ["8", f"{record['parameters']:,}", "40"]
    shown = [v for k, v in record["figures"].items() if not k.startswith("last ")]
    figures = [float(cell) for cell in cells[4 : 4 + len(shown)]]
    assert figures == pytest.approx(shown, rel=5e-4)
    assert "As expected." in text
    assert f"commit {record['commit']}" in text
    assert (results / f"{section.name}.png").stat().st_size > 1000
    assert "## Copying" not in text
    assert "No." not in text
    path = results / section.records
    path.write_text(path.read_text()[:-9])
    with pytest.raises(ValueError, match=f"is damaged.* Received: {path}"):
        write_report(tmp_path)
    assert (tmp_path / "RESULTS.md").read_text() == text


def test_report_on_an_example_that_compares(tmp_path):
    (section,) = (s for s in SECTIONS if s.title == "BNP on CIFAR-10")
    results = tmp_path / "results"
    results.mkdir()
    (run,) = section.runs()
    record = run_record({"seed": 5})
    add_record(results / section.records, run.name, record)
    (results / f"{section.name}-table.md").write_text("| network |\n|---|\n| x |\n")
    write_report(tmp_path)
    text = (tmp_path / "RESULTS.md").read_text()
    assert "## BNP on CIFAR-10\n\n| network |\n|---|\n| x |\n" in text
    assert f"(results/{section.name}-loss-60.png)" in text
    assert f"(Seed 5; commit {record['commit']}" in text


def ucr_records(folder, figures, baseline=None):
    (folder / "results").mkdir(exist_ok=True)
    for row, accuracies in figures.items():
        for seed, accuracy in enumerate(accuracies):
            record = run_record({"seed": seed}) | {"baseline": baseline}
            record["figures"] = {
                "test accuracy there": accuracy,
                "best test accuracy": accuracy + 0.125,
            }
            record |= {"monitor": "error_rate", "parameters": 3, "curves": {}}
            record |= {"updates": [10], "seconds": 60.0}
            add_record(folder / "results/ucr.json", UCR.run_names(row)[seed], record)


def ucr_rows(folder, name):
    write_report(folder)
    lines = (folder / "RESULTS.md").read_text().partition("## UCR")[2].splitlines()
    head = next(line for line in lines if line.startswith("|")).split(" | ")
    rows = [line.split(" | ") for line in lines if line.startswith(f"| {name}")]
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_report_with_models_side_by_side(tmp_path):
    # Deviations of 0.05, whatever the mean.
    ucr_records(tmp_path, {"svdrnn CBF": (0.7, 0.8, 0.75)}, baseline=0.6)
    (cells,) = ucr_rows(tmp_path, "CBF")
    assert cells["svdRNN, published |"] == "0.75 ± 0.05, 0.948 |"
    assert cells["RNN, published"] == ", 0.702"
    assert cells["most frequent class"] == "0.4"
    lines = (tmp_path / "RESULTS.md").read_text().splitlines()
    title = "Mean ± deviation of seeds 0 to 2"
    assert any(title in line for line in lines)
    assert not any(line.startswith("| Adiac") for line in lines)
    assert not any("mean of" in line for line in lines)


def test_more_seeds_of_some_data_sets(tmp_path):
    """They count in the row of their set, and in the mean over sets do not."""
    assert len(UCR.run_names("rnn CBF")) == 10
    assert len(UCR.run_names("rnn Adiac")) == 3
    models = ("rnn", "lstm", "ornn", "svdrnn")
    figures = {f"{model} Adiac": [0.4, 0.5, 0.6] for model in models}
    figures |= {f"{model} CBF": [0.4, 0.5, 0.6, 0.9] for model in models}
    ucr_records(tmp_path, figures)
    (row,) = ucr_rows(tmp_path, "CBF")
    assert row["RNN, published"] == "0.6 ± 0.22, 0.702"  # 0.216 is the deviation.
    (mean,) = ucr_rows(tmp_path, "**mean of 2**")
    assert mean["RNN, published"] == f"0.5 ± 0.1, {(0.552 + 0.702) / 2:.3f}"
    # A set without one of the seeds that all are to have does not count.
    path = tmp_path / "results/ucr.json"
    records = json.loads(path.read_text())
    del records["ucr-rnn-cbf-seed-1"]
    path.write_text(json.dumps(records))
    (mean,) = ucr_rows(tmp_path, "**mean of 1**")
    assert mean["RNN, published"] == "0.5 ± 0.1, 0.552"


def test_what_is_over_all_data_sets(tmp_path):
    """Each seed's 0.5, 0.6, 0.7 of two sets; ECG200 and a set in part are left out."""
    figures = {
        f"{model} {name}": [0.5 + by, 0.6 + by, 0.7 + by]
        for model in ("rnn", "lstm", "ornn", "svdrnn")
        for name, by in (("Beef", 0.1), ("CBF", -0.1))
    }
    figures |= {f"{m} ECG200": [0.0] * 3 for m in ("rnn", "lstm", "ornn", "svdrnn")}
    figures["rnn Adiac"] = [0.9] * 3
    ucr_records(tmp_path, figures, baseline=0.75)
    (first,) = ucr_rows(tmp_path, "**mean of 2, without ECG200**")
    (second,) = ucr_rows(tmp_path, "**best test, mean of 2, without ECG200**")
    papers = UCR.data_sets
    published = (papers["Beef"][0] + papers["CBF"][0]) / 2
    assert first["RNN, published"] == f"0.6 ± 0.1, {published:.3f}"
    assert second["RNN, published"] == f"0.725 ± 0.1, {published:.3f}"
    assert first["most frequent class"] == "0.25"
    # Deviations of 0.1: 0.600 and 0.733 of Beef, near 0.7, of CBF, 0.5, 0.702.
    (near,) = ucr_rows(tmp_path, "**published within two deviations**")
    assert papers["Beef"] == [0.600, 0.700, 0.733, 0.733]
    assert papers["CBF"] == [0.702, 0.967, 0.881, 0.948]
    assert near["RNN, published"] == "1 of 2"
    assert near["LSTM, published"] == near["oRNN, published"] == "1 of 2"
