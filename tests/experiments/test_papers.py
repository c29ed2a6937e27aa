"""The map of the papers' tables and figures."""

import json

import pytest

from experiments.catalog import SECTIONS, select
from experiments.papers import ITEMS, anchor, overview

NAMES = [f"{item.paper.split(',')[0]} {item.number} {item.shows}" for item in ITEMS]


@pytest.mark.parametrize("item", ITEMS, ids=NAMES)
def test_sections_are_those_of_the_catalog(item):
    titles = {section.title for section in SECTIONS}
    for title in (*item.whole, *item.part):
        assert title in titles or any(
            title.endswith(" ") and each.startswith(title) for each in titles
        )
    assert item.whole or item.part or item.otherwise


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
