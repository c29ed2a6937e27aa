"""The map of the papers' tables and figures."""

import json

import pytest

from experiments.catalog import PUBLISHED, SECTIONS, select
from experiments.papers import ITEMS, anchor, overview
from experiments.presets import PRESETS

NAMES = [f"{item.paper.split(',')[0]} {item.number} {item.shows}" for item in ITEMS]


@pytest.mark.parametrize("item", ITEMS, ids=NAMES)
def test_sections_are_those_of_the_catalog(item):
    titles = {section.title for section in SECTIONS}
    for title in (*item.whole, *item.part):
        assert title in titles or any(
            title.endswith(" ") and each.startswith(title) for each in titles
        )


def test_commands_run_what_they_stand_beside(tmp_path):
    for item, line in zip(ITEMS, overview(tmp_path)[2:], strict=True):
        command = line.strip("| ").split(" | ")[-1].strip("`")
        if not (item.whole or item.part):
            assert "--only" not in line
            continue
        chosen, _, prefix = command.split()
        names = {run.name for run in select(chosen, [prefix])}
        wanted = [s for s in SECTIONS if s.title in (item.whole or item.part)]
        assert {run.name for section in wanted for run in section.runs()} <= names


def test_says_what_there_is(tmp_path):
    (item,) = (i for i in ITEMS if i.shows == "adding, T = 400")
    (section,) = (s for s in SECTIONS if s.title in item.whole)
    runs = section.runs()

    def standing():
        line = overview(tmp_path)[2 + ITEMS.index(item)]
        return line.split(" | ")[3]

    assert standing() == "not run"
    (tmp_path / f"{runs[0].name}.json").write_text(json.dumps({}))
    link = f"[{section.title}](#{anchor(section.title)})"
    assert standing() == f"{link}, 1 of {len(runs)} runs"
    for run in runs:
        (tmp_path / f"{run.name}.json").write_text(json.dumps({}))
    assert standing() == link


def test_another_papers_network_does_not_count(tmp_path):
    items = [i for i in ITEMS if i.shows == "permuted MNIST"]
    (section,) = (s for s in SECTIONS if s.title in items[0].whole)
    (run,) = (r for r in section.runs() if r.name.endswith("scornn-170"))
    (tmp_path / f"{run.name}.json").write_text(json.dumps({}))
    lines = [overview(tmp_path)[2 + ITEMS.index(item)] for item in items]
    assert ["not run" in line for line in lines] == [False, True, True]


# The papers' tables, line by line.
PIXELS_AND_PERMUTED = """
scornn 170 0.973 0.943 | scornn 360 0.983 0.962 | scornn 512 0.985 0.966
lstm 128 0.987 0.920 | lstm 256 0.989 0.929 | lstm 512 0.985 0.920
restricted-urnn 512 0.976 0.945 | restricted-urnn 2170 0.984 0.953
full-urnn 116 0.947 0.925 | full-urnn 512 0.974 0.947 | eurnn 512 - 0.937
ornn 256 0.972 - | svdrnn 256 0.976 - | antisymmetric 128 0.980 0.958
antisymmetric-gated 128 0.988 0.931
"""


def test_published_accuracies_are_those_of_the_tables():
    found = {
        (task, model, units): text
        for (task, model), figures in PUBLISHED.items()
        for units, text in figures.items()
    }
    assert {*found} <= {(row.task, row.model, row.units) for row in PRESETS}
    expected = {}
    for entry in PIXELS_AND_PERMUTED.replace("\n", "|").strip("|").split("|"):
        model, units, *accuracies = entry.split()
        for task, text in zip(("mnist", "permuted-mnist"), accuracies, strict=True):
            expected[task, model, int(units)] = text
    expected = {key: text for key, text in expected.items() if text != "-"}
    assert {k: v for k, v in found.items() if "mnist" in k[0]} == expected
