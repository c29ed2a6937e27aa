"""What the documents say of results is what the records say."""

import itertools
import json
import re
from pathlib import Path

import pytest

from experiments import report

ROOT = Path(__file__).resolve().parent.parent


def lines(page):
    return (ROOT / page).read_text("utf-8").splitlines()


def test_the_report_is_that_of_the_records(tmp_path, monkeypatch):
    """`python examples/reproduce.py --report` writes it anew."""
    monkeypatch.setattr(report, "draw", lambda *args, **kwargs: None)
    (tmp_path / "results").symlink_to(ROOT / "results")
    report.write_report(tmp_path)
    written = (tmp_path / "RESULTS.md").read_text("utf-8")
    assert written == (ROOT / "RESULTS.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("timit-sample-three-divisions-of-its-speakers", "docs/timit.md"),
        ("denoising-timit-sample", "docs/denoising.md"),
    ],
)
def test_tables_are_those_of_the_records(name, page):
    there = lines(page)
    first, *_ = (ROOT / f"results/{name}-results.md").read_text("utf-8").split("\n\n")
    head, _, *rows = first.splitlines()
    places = [i for i, line in enumerate(there) if line == head]
    assert rows in [there[i + 2 : i + 2 + len(rows)] for i in places]


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("timit-sample-three-divisions-of-its-speakers", "docs/timit.md"),
        ("denoising-timit-sample", "docs/denoising.md"),
    ],
)
def test_commits_that_pages_name_are_those_of_records(name, page):
    text = (ROOT / page).read_text("utf-8")
    (commit,) = re.findall(r"Seeds 0[0-9a-z ]*, commit\s(\w+)", text)
    record = (ROOT / f"results/{name}.json").read_text("utf-8")
    assert f'"commit": "{commit}"' in record


# What is said of scoRNN and the LSTM in one line, by the start of its name in RESULTS.
COMPARED = {
    "copying-t-1000": "test cross-entropy there",
    "permuted-mnist-as-long-as-the-papers": "test accuracy there",
    "adding-t-200": "test mse there",
}


@pytest.mark.parametrize("page", ["README.md", "docs/replace_your_lstm.md"])
@pytest.mark.parametrize("name", COMPARED)
def test_figures_beside_the_lstm_are_those_of_the_records(name, page):
    anchor = f"RESULTS.md#{name.replace('-t-', '-t--')})"
    (row,) = [line for line in lines(page) if line.startswith("|") and anchor in line]
    for model, cell in zip(("scornn", "lstm"), row.split("|")[-3:-1], strict=True):
        (path,) = (ROOT / "results").glob(f"{name}-{model}*.json")
        record = json.loads(path.read_text("utf-8"))
        printed = cell.split()[-1]
        digits = len(printed.replace(".", "").lstrip("0"))
        figure = float(f"{record['figures'][COMPARED[name]]:.{digits}g}")
        assert figure == float(printed)


@pytest.mark.parametrize(
    ("name", "figure"),
    [
        *(
            (f"copying-t-1000-{model}", "test cross-entropy there")
            for model in ("scornn", "scurnn", "full-urnn", "lstm")
        ),
        *(
            (
                f"characters-of-the-penn-treebank-10-epochs-{model}",
                "test bits per character there",
            )
            for model in ("enrnn", "lstm")
        ),
        *(
            (f"adding-t-200-{model}", "test mse there")
            for model in ("goru", "lstm", "ornn", "eurnn", "restricted-urnn")
        ),
    ],
)
def test_the_choice_of_a_layer_is_by_figures_of_the_records(name, figure):
    text = (ROOT / "docs/README.md").read_text("utf-8")
    choice = text.partition("## In short")[2].partition("\n## ")[0]
    printed = re.findall(r"\d\.\d+(?:e-\d+)?", choice)
    record = json.loads((ROOT / f"results/{name}.json").read_text("utf-8"))
    measured = record["figures"][figure]
    assert {float(f"{measured:.{digits}g}") for digits in (2, 3)} & {
        *map(float, printed)
    }


@pytest.mark.parametrize(
    "page", ["README.md", "docs/replace_your_lstm.md", "docs/README.md"]
)
def test_the_linear_map_is_the_recorded_one(page):
    text = " ".join((ROOT / page).read_text("utf-8").split())
    (printed,) = re.findall(r"linear map of all pixels has (0\.\d+)", text)
    path = ROOT / "results/deep-networks-on-mnist.json"
    record = json.loads(path.read_text("utf-8"))
    (linear,) = [row for row in record["results"] if row["model"] == "linear"]
    assert f"{linear['test_accuracy']:.3f}" == printed


def test_the_readme_has_the_accuracy_after_the_papers_epochs():
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    found = re.findall(r"reaches ([\d.]+), and ([\d.]+) at its best", text)
    names = ("test accuracy there", "best test accuracy")
    for printed, model in zip(found, ("scornn-170", "lstm-128"), strict=True):
        path = ROOT / f"results/permuted-mnist-as-long-as-the-papers-{model}.json"
        figures = json.loads(path.read_text("utf-8"))["figures"]
        # Rounded down, where the last digit is a five.
        assert all(
            0 <= figures[n] - float(p) < 1e-3
            for n, p in zip(names, printed, strict=True)
        )


def test_the_readme_has_the_speed_of_its_page():
    (whole,) = tables_of_speed("docs/speed.md")
    (table,) = tables_of_speed("README.md")
    for row in table:
        shape = {"n": row["n"], "T": "784", "B": "128"}
        (there,) = [other for other in whole if shape.items() <= other.items()]
        assert row.items() <= there.items()


def tables_of_speed(page):
    """The tables of a page with a column of the layer, each row by its columns."""
    found = []
    for number, line in enumerate(lines(page)):
        if line.startswith("| n") and "| `ScoRNN` |" in line:
            head = [cell.strip() for cell in line.strip("|").split("|")]
            rows = itertools.takewhile(
                lambda line: line.startswith("|"), lines(page)[number + 2 :]
            )
            cells = (
                [cell.strip() for cell in row.strip("|").split("|")] for row in rows
            )
            found.append([dict(zip(head, row, strict=True)) for row in cells])
    return found


def test_the_readme_has_the_denoising_of_its_page():
    readme = (ROOT / "README.md").read_text("utf-8")
    goru, lstm = re.search(r"`GORU` ([\d.]+) \| ([\d.]+) \|", readme).groups()
    denoising = (ROOT / "docs/denoising.md").read_text("utf-8")
    assert f"| GORU | {goru} ±" in denoising
    assert f"| LSTM | {lstm} ±" in denoising
