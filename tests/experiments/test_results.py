"""What the documents say of results is what the records say."""

import csv
import itertools
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
    ("name", "page"),
    [
        ("timit-sample-three-divisions-of-its-speakers", "speech"),
        ("denoising-timit-sample", "speech"),
        ("denoising-synthetic-speech", "goru"),
    ],
)
def test_tables_are_those_of_the_records(name, page):
    table, *_ = read(f"results/{name}-results.md").split("\n\n")
    head, _, rows = table.split("\n", 2)
    pattern = rf"{re.escape(head)}\n.*\n{re.escape(rows)}\s+\(Seeds.*?commit\s(\w+)"
    (commit,) = re.findall(pattern, read(f"docs/{page}.md"))
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


PAGE = "docs/comparison.md"
# The tasks of each section's table, and the columns with their errors.
TABLES = {
    "Copying": {"copying-300": 1, "copying-1000": 5},
    "Adding": {"adding-200": 1, "adding-750": 5},
    "A class seen long ago": {"first-step-2000": 1, "addition-2": 5},
    "Recorded data": {
        "ucr-CricketX": 1,
        "ucr-FiftyWords": 2,
        "speech-75": 3,
        "pixels-10500": 4,
    },
}


def compared():
    """Returns the last errors from seeds 10 to 14, by task and layer."""
    runs = {}
    for row in csv.DictReader(read("results/comparison.csv").splitlines()):
        if int(row["seed"]) >= 10:
            last = np.nan_to_num(float(row["curve"].split()[-1]), nan=np.inf)
            runs.setdefault((row["task"], row["layer"]), []).append(last)
    return runs


@pytest.mark.parametrize("section", TABLES)
def test_errors_of_the_comparison_are_those_of_its_runs(section):
    text = read(PAGE).partition(f"## {section}")[2]
    lines = re.findall(r"^\| .*", text.partition("\n## ")[0], re.MULTILINE)
    table = {name: cells for _, name, *cells in (re.split(r" ?\| ?", x) for x in lines)}
    shown = {"GORU, paper": "`GORU.from_paper`"}
    shown |= {f"orthogonal {name}": f"{name}, orthogonal" for name in ("LSTM", "GRU")}
    runs = {key: of for key, of in compared().items() if key[0] in TABLES[section]}
    assert len(runs) == 17 * len(TABLES[section])
    for (task, layer), errors in runs.items():
        name = shown.get(layer, layer)
        cells = table.get(name) or table[f"`{name}`"]
        printed = re.findall(r"[\d.]+|diverged", cells[TABLES[section][task] - 1])
        found = [np.inf if x == "diverged" else float(x) for x in printed]
        wanted = np.array([np.median(errors), min(errors), max(errors)])
        wanted[wanted > 1e6] = np.inf
        # Two digits are printed; one number if all three have the same.
        np.testing.assert_allclose(np.broadcast_to(found, 3), wanted, rtol=0.05)


SHORT = ("ucr-CricketX", "ucr-FiftyWords", "speech-75", "addition-2")


@pytest.mark.parametrize(
    ("tasks", "layers", "others", "seeds"),
    [
        (SHORT, ["ScoRNN", "ScuRNN", "ENRNN"], ["LSTM"], 0),
        (SHORT[::2], ["GORU, paper"], ["LSTM", "GRU"], 5),
        (SHORT[3:], ["LSTM"], ["GORU"], 4),
        (["copying-1000"], ["ScuRNN"], ["ScoRNN"], 5),
        (["first-step-2000"], ["ScuRNN"], ["ScoRNN", "LSTM", "GRU"], 4),
    ],
)
def test_from_how_many_seeds_a_layer_is_ahead(tasks, layers, others, seeds):
    """As the README and docs/comparison.md say."""
    runs = compared()
    for task, layer, other in itertools.product(tasks, layers, others):
        below = np.less(runs[task, layer], runs[task, other])
        assert sum(below) == seeds, (task, layer, other)


def test_the_readme_has_figures_of_the_comparison():
    rows = re.findall(r"^\|.*: [\d.]+ \|$", read("README.md"), re.MULTILINE)
    assert len(rows) == 10
    for row in rows:
        *_, layer, lstm, gru, _ = row.split(" | ")
        for name, cell in (layer.split(maxsplit=1), ("LSTM", lstm), ("GRU", gru)):
            found = re.findall(rf"^\| {re.escape(name)} .*", read(PAGE), re.MULTILINE)
            assert any(f" {cell} |" in line for line in found), (name, cell)
