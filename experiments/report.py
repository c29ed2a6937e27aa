"""The report on the records of runs: `RESULTS.md`, and a figure for each section."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.catalog import SECTIONS
from experiments.comparison import (
    model_table,
    records_of,
    row_title,
    spread,
    values_of,
)
from experiments.papers import overview
from experiments.records import draw, read_record
from experiments.sections import Comparison, Section
from experiments.tables import table
from keras_ortho.files import remove_asides, replacing
from keras_ortho.locks import locked

# The records of each row of a section, one for each seed.
Records = Mapping[str, Sequence[Mapping[str, Any]]]

HEAD = """# Results

What the papers published, and what came out here: `python examples/reproduce.py`. The
epoch is chosen on validation data; a figure that is chosen on the test data, as some
papers do, is named the best on the test data. `results/` holds the record of each run
with all its settings, curves and versions. Where one seed is named, how far another
would differ has not been measured.
"""
MAP = """## The papers' tables and figures

What is here of each. "In part" is shorter than in the paper, of fewer networks or on
fewer data; runs without a record have not been made.
"""
# Figures as a table by itself calls them.
ABOUT = {
    "test accuracy there": "test accuracy at the best validation",
    "best test accuracy": "best test accuracy of all epochs",
}


def write_report(folder: Path) -> None:
    """Writes `RESULTS.md`, and a figure for each section, from the records of runs.

    A file `results/SECTION.md` beside the records, where there is one, is put below
    the table: what to say of the results.

    Args:
        folder: Folder that holds `results`. Of several processes that report on the
            same, one waits for the other: the last has all records.

    Raises:
        ValueError: If a record is damaged. The message names it.
    """
    results = folder / "results"
    with locked(results, ".report.lock", wait=True):
        for name in ("RESULTS.md", *(f"results/{s.name}.png" for s in SECTIONS)):
            remove_asides(folder / name)
        parts = [HEAD, MAP, *overview(results), ""]
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
            parts += [notes.read_text()] if notes.exists() else []
        with replacing(folder / "RESULTS.md") as aside:
            aside.write_text("\n".join(parts))


def _comparison(section: Comparison, folder: Path) -> list[str]:
    path = folder / f"{section.name}.json"
    if not path.exists():
        return []
    record = read_record(path)
    lines = []
    if section.table:
        written = folder / f"{section.name}-{section.table}"
        lines += [*written.read_text().splitlines(), ""]
    for picture in section.pictures:
        lines += [f"![{section.title}](results/{section.name}-{picture})", ""]
    return [*lines, f"(Seed {record['settings']['seed']}; {_about(record)}.)"]


def _section(section: Section, folder: Path) -> list[str]:
    found = {row: records_of(section, row, folder) for row in section.models}
    records = {row: of for row, of in found.items() if of}
    if not records:
        return []
    everything = [record for row in records.values() for record in row]
    lines = (_across if section.across else _by_model)(section, records)
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
    about = sorted({_about(record) for record in everything})
    title = "Seed"
    if len(seeds) > 1:
        title = "Means and standard deviations of the seeds"
    return [
        *lines,
        "",
        f"({title} {', '.join(map(str, seeds))}; {'; '.join(about)}.)",
    ]


def _about(record: dict[str, Any]) -> str:
    return (
        f"commit {record['commit']}, {record['backend']} {record['backend_version']}, "
        f"Keras {record['keras']}, Python {record['python']}, {record['cores']} cores"
    )


def _by_model(section: Section, records: Records) -> list[str]:
    """The table with a row for each model."""
    rows = {row_title(row): found for row, found in records.items()}
    published = {row_title(row): text for row, text in section.published.items()}
    return table(*model_table(rows, published, section.early))


def _across(section: Section, records: Records) -> list[str]:
    """The tables of all models side by side, one for each figure."""
    models, names = (
        list(dict.fromkeys(row.partition(" ")[part] for row in section.models))
        for part in (0, 2)
    )
    titles = [f"{row_title(model)}, published" for model in models]
    kept = [name for name in names if name not in section.apart]
    lines = []
    for figure in section.across:
        rows = []
        for name in names:
            found = {model: records.get(f"{model} {name}", ()) for model in models}
            cells = [name, spread(_constant(found))]
            for model in models:
                measured = spread(values_of(found[model], figure))
                published = section.published.get(f"{model} {name}", "")
                cells.append(f"{measured}, {published}")
            rows.append(cells)
        rows.append(_means(section, records, figure, models, kept))
        lines += ["", f"The {ABOUT.get(figure, figure)}:", ""]
        lines += table(["", "most frequent class", *titles], rows)
    return lines[1:]


def _means(
    section: Section,
    records: Records,
    figure: str,
    models: Sequence[str],
    names: Sequence[str],
) -> list[str]:
    """The row of means over names, where all have been run."""
    title = "mean" + " without " * bool(section.apart) + " and ".join(section.apart)
    constant = [
        _constant({model: records.get(f"{model} {name}", ()) for model in models})
        for name in names
    ]
    seeds = len(section.seeds)
    cells = [f"**{title}**", spread(_over_names(constant, seeds))]
    for model in models:
        found = [records.get(f"{model} {name}", ()) for name in names]
        runs = [values_of(each, figure) for each in found]
        published = [section.published.get(f"{model} {name}") for name in names]
        known = [float(value) for value in published if value]
        whole = f"{statistics.fmean(known):.3f}" if len(known) == len(names) else ""
        cells.append(f"{spread(_over_names(runs, seeds))}, {whole}")
    return cells


def _over_names(runs: Sequence[Sequence[float]], seeds: int) -> list[float]:
    """The mean of each seed, which is what varies; none if a run is missing."""
    if any(len(values) != seeds for values in runs):
        return []
    return [statistics.fmean(seed) for seed in zip(*runs, strict=True)]


def _constant(found: Records) -> list[float]:
    """The accuracy of the class that is most frequent in training, for each seed."""
    known = {
        record["settings"]["seed"]: 1 - record["baseline"]
        for records in found.values()
        for record in records
        if record.get("baseline") is not None
    }
    return [known[seed] for seed in sorted(known)]
