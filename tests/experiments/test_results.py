"""What the documents say of results is what the records say."""

import json
import re

import numpy as np
import pytest

from experiments import report
from tests.modules import ROOT


def read(page):
    return (ROOT / page).read_text("utf-8")


def records(section):
    return json.loads(read(f"results/{section}.json"))


def test_the_report_is_that_of_the_records(tmp_path, monkeypatch):
    """`python examples/reproduce.py --report` writes it anew."""
    monkeypatch.setattr(report, "draw", lambda *args, **kwargs: None)
    (tmp_path / "results").symlink_to(ROOT / "results")
    report.write_report(tmp_path)
    assert (tmp_path / "RESULTS.md").read_text("utf-8") == read("RESULTS.md")


@pytest.mark.parametrize(
    "name", ["timit-sample-three-divisions-of-its-speakers", "denoising-timit-sample"]
)
def test_tables_are_those_of_the_records(name):
    table, *_ = read(f"results/{name}-results.md").split("\n\n")
    head, _, rows = table.split("\n", 2)
    pattern = rf"{re.escape(head)}\n.*\n{re.escape(rows)}\s+\(Seeds.*?commit\s(\w+)"
    (commit,) = re.findall(pattern, read("docs/speech.md"))
    assert f'"commit": "{commit}"' in read(f"results/{name}.json")


FIGURES = {
    "copying-t-1000": "test cross-entropy there",
    "permuted-mnist-as-long-as-the-papers": "test accuracy there",
    "adding-t-200": "test mse there",
    "characters-of-the-penn-treebank-10-epochs": "test bits per character there",
}


def mean(name, model):
    """Returns the mean over the seeds of a model."""
    runs = (run for run in records(name).values() if run["settings"]["model"] == model)
    return np.mean([run["figures"][FIGURES[name]] for run in runs])


@pytest.mark.parametrize("name", [*FIGURES][:3])
def test_figures_beside_the_lstm_are_those_of_the_records(name):
    anchor = re.escape(f"RESULTS.md#{name.replace('-t-', '-t--')})")
    (row,) = re.findall(rf"^\|.*{anchor}.*", read("README.md"), re.MULTILINE)
    for model, cell in zip(("scornn", "lstm"), row.split("|")[-3:-1], strict=True):
        printed = cell.split()[-1]
        digits = len(printed.replace(".", "").lstrip("0"))
        assert float(f"{mean(name, model):.{digits}g}") == float(printed)


@pytest.mark.parametrize(
    ("name", "models"),
    [
        ("copying-t-1000", "scornn scurnn full-urnn lstm"),
        ("characters-of-the-penn-treebank-10-epochs", "enrnn lstm"),
        ("adding-t-200", "goru-paper lstm ornn eurnn restricted-urnn gru"),
    ],
)
def test_the_choice_of_a_layer_is_by_figures_of_the_records(name, models):
    choice = read("docs/README.md").partition("## In short")[2].partition("\n## ")[0]
    printed = {*map(float, re.findall(r"\d\.\d+(?:e-\d+)?", choice))}
    for model in models.split():
        measured = mean(name, model)
        assert {float(f"{measured:.{digits}g}") for digits in (2, 3)} & printed, model
