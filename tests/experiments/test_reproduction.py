import json
import shutil

import pytest

from keras_ortho.experiments.catalog import EXPERIMENTS
from keras_ortho.experiments.command import main, make_parser, settle
from keras_ortho.experiments.reproduction import SECTIONS, SETS, select, write_report


def test_each_set_holds_the_one_before():
    quick, standard, full = ({run.name for run in select(each)} for each in SETS)
    assert quick < standard < full
    names = [run.name for run in select("full")]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_arguments_are_those_of_the_example(section, tmp_path):
    name = section.script.replace("_", "-")
    parser = make_parser(EXPERIMENTS[name], "")
    for run in select("full", [section.name]):
        options = parser.parse_args(["--out", str(tmp_path), *run.arguments])
        settle(options, EXPERIMENTS[name])
        assert options.model == run.model
        assert options.seed == run.seed


def test_prefixes_choose():
    assert [run.model for run in select("standard", ["adding-t-750-l"])] == ["lstm"]
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
