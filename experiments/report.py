"""The report on recorded runs: `RESULTS.md`, and a figure for each section."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.across import across_tables
from experiments.catalog import PUBLISHED, SECTIONS, TASKS
from experiments.comparison import Records, model_table, records_of, row_title
from experiments.layers import title_of, units_text
from experiments.papers import overview
from experiments.records import draw, gather, read_record
from experiments.sections import Comparison, Section
from experiments.tables import check_own, table
from keras_ortho.files import remove_asides, replacing
from keras_ortho.locks import locked

HEAD = """# Results

What the papers published, and what `python examples/reproduce.py` measured here. The
epoch is chosen on validation data; a figure chosen on the test data, as in some papers,
is called the best on the test data. `results/` holds the record of each run, with all
its settings, curves and versions. Where one seed is named, the spread over seeds has
not been measured.
"""
BACKENDS = {"tensorflow": "TensorFlow", "jax": "JAX", "torch": "PyTorch"}
MAP = """## The papers' tables and figures

What each has here. "In part" means a shorter run than in the paper, fewer networks or
less data; "not run" means that there is no record.
"""
HERE = """## Published figures

On test data, by the number of units: accuracies on images, squared errors in dB² on
TIMIT, bits per character on the Penn Treebank. The tables below repeat those of the
networks that were run here. On TIMIT, what follows "then", ENRNN and the LSTM with 468
units are of table 2.4 of the dissertation: 300 epochs, with padding left out of the
loss. The others are of table 2.2: 200 epochs, with padding for scoRNN and LSTM. For the
LSTM the sources disagree: where table 2.2 has 14.30, 12.95 and 12.62, the submission of
the scoRNN paper to ICLR 2018 has 17.18, 15.91 and 16.06.
"""


def write_report(folder: Path, gathered: bool = False) -> None:
    """Writes `RESULTS.md`, and a figure for each section, from the records of runs.

    If there is a file `results/SECTION.md` beside the records, it is inserted below
    the table, as a comment on the results.
    """
    check_own(folder / "RESULTS.md", "`python examples/reproduce.py`")
    results = folder / "results"
    with locked(results, ".report.lock", wait=True):
        for section in SECTIONS if gathered else ():
            if isinstance(section, Section) and section.table:
                gather(results / section.table, [run.name for run in section.runs()])
        for name in ("RESULTS.md", *(f"results/{s.name}.png" for s in SECTIONS)):
            remove_asides(folder / name)
        parts = [HEAD, MAP, *overview(results), "", HERE, *_published(), ""]
        for section in SECTIONS:
            lines = (
                _section(section, results)
                if isinstance(section, Section)
                else _comparison(section, results)
            )
            if not lines:  # Not run.
                continue
            notes = results / f"{section.name}.md"
            parts += [f"## {section.title}", "", *lines, ""]
            parts += [notes.read_text("utf-8")] if notes.exists() else []
        with replacing(folder / "RESULTS.md") as aside:
            aside.write_text("\n".join(parts), "utf-8")


def _comparison(section: Comparison, folder: Path) -> list[str]:
    path = folder / f"{section.name}.json"
    if not path.exists():
        return []
    record = read_record(path)
    lines = []
    if section.table:
        written = folder / f"{section.name}-{section.table}"
        first, _, more = written.read_text("utf-8").partition("\n\n")
        lines += [*first.splitlines(), ""]
        if more:
            lines += [f"All tables are in `results/{written.name}`.", ""]
    for picture in section.pictures:
        lines += [f"![{section.title}](results/{section.name}-{picture})", ""]
    begin, count = record["settings"]["seed"], record["settings"].get("seeds", 1)
    seeds = _from_seeds(range(begin, begin + count))
    return [*lines, f"({seeds}; {_about([record])}.)"]


def _section(section: Section, folder: Path) -> list[str]:
    found = {row: records_of(section, row, folder) for row in section.models}
    records = {row: of for row, of in found.items() if of}
    if not records:
        return []
    everything = [record for row in records.values() for record in row]
    lines = (across_tables if section.across else _by_model)(section, records)
    if section.picture:
        first = everything[0]
        baseline = first.get("baseline")
        draw(
            folder / f"{section.name}.png",
            {row_title(row): found for row, found in records.items()},
            first["monitor"],
            baselines={"baseline": baseline} if baseline else None,
            ylabel=section.ylabel,
            log=section.log,
        )
        lines += ["", f"![{section.title}](results/{section.name}.png)"]
    seeds = sorted({record["settings"]["seed"] for record in everything})
    return [*lines, "", f"({_from_seeds(seeds)}; {_about(everything)}.)"]


def _from_seeds(seeds: Sequence[int]) -> str:
    title = "Means and standard deviations of the seeds" if len(seeds) > 1 else "Seed"
    return f"{title} {', '.join(map(str, seeds))}"


def _about(records: Records) -> str:
    """Lists the commits of records, for each environment that they were made in."""
    commits: dict[str, set[str]] = {}
    for record in records:
        where = (
            f"{BACKENDS[record['backend']]} {record['backend_version']}, "
            f"Keras {record['keras']}, Python {record['python']}, "
            f"a machine with {record['cores']} cores"
        )
        commits.setdefault(where, set()).add(record["commit"])
    return "; ".join(
        f"commit{'s' * (len(found) > 1)} {', '.join(sorted(found))}; {where}"
        for where, found in sorted(commits.items())
    )


def _published() -> list[str]:
    rows = []
    for (task, model), figures in PUBLISHED.items():
        by_units = [f"{units_text(units)}: {text}" for units, text in figures.items()]
        title, *_ = TASKS.get(task, ("TIMIT",))
        rows.append([title, title_of(model), "; ".join(by_units)])
    return table(["task", "network", "published, by units"], rows)


def _by_model(section: Section, records: Mapping[str, Records]) -> list[str]:
    """Returns the table with a row for each model."""
    rows = {row_title(row): found for row, found in records.items()}
    published = {row_title(row): text for row, text in section.published.items()}
    return table(*model_table(rows, published))
