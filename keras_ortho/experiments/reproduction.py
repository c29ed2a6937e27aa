"""The runs of a set of sections, and the report on them."""

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_ortho.experiments.layers import TITLES
from keras_ortho.experiments.report import draw
from keras_ortho.experiments.sections import Comparison, Run, Section
from keras_ortho.experiments.tables import SECTIONS
from keras_ortho.files import replacing

SETS = ("quick", "standard", "full")
# Figures as a table by itself calls them.
ABOUT = {
    "test accuracy there": "test accuracy at the best validation",
    "best test accuracy": "best test accuracy of all epochs",
}
HEAD = """# Results

What the papers published, and what came out here: `python examples/reproduce.py`. The
epoch is chosen on validation data; a figure that is chosen on the test data, as some
papers do, is named the best on the test data. `results/` holds the record of each run
with all its settings, curves and versions.
"""


def select(chosen: str, prefixes: Sequence[str] | None = None) -> list[Run]:
    """Lists the runs of a set.

    Args:
        chosen: One of `SETS`; each holds those before it.
        prefixes: Beginnings of the names that are wanted. Default: `None`, all.

    Returns:
        The runs, in order.

    Raises:
        ValueError: If there is no such set, or none of its runs begins so.

    Example:
    >>> [run.name for run in select("quick")]
    ['adding-t-200-an-epoch-scornn', 'adding-t-200-an-epoch-lstm']
    """
    if chosen not in SETS:
        raise ValueError(f"`chosen` must be one of {SETS}. Received: {chosen!r}")
    held = SETS[: SETS.index(chosen) + 1]
    runs = [
        run for section in SECTIONS if section.set in held for run in section.runs()
    ]
    if prefixes is not None:
        runs = [run for run in runs if run.name.startswith(tuple(prefixes))]
        if not runs:
            raise ValueError(
                f"`prefixes` must begin the name of a run of {chosen!r}. "
                f"Received: {list(prefixes)}"
            )
    return runs


def write_report(folder: Path) -> None:
    """Writes `RESULTS.md`, and a figure for each section, from the records of runs.

    A file `results/SECTION.md` beside the records, where there is one, is put below
    the table: what to say of the results.

    Args:
        folder: Folder that holds `results`.
    """
    results = folder / "results"
    parts = [HEAD]
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
    record = json.loads(path.read_text())
    lines = []
    if section.table:
        table = folder / f"{section.name}-{section.table}"
        lines += [*table.read_text().splitlines(), ""]
    for picture in section.pictures:
        lines += [f"![{section.title}](results/{section.name}-{picture})", ""]
    return [*lines, f"(Seed {record['settings']['seed']}; {_about(record)}.)"]


def _section(section: Section, folder: Path) -> list[str]:
    records: dict[str, list[dict[str, Any]]] = {}
    for row in section.models:
        paths = [folder / f"{section.record(row, s)}.json" for s in section.seeds]
        found = [json.loads(path.read_text()) for path in paths if path.exists()]
        if found:
            records[row] = found
    if not records:
        return []
    everything = [record for row in records.values() for record in row]
    lines = (_across if section.across else _by_model)(section, records)
    if section.picture:
        first = everything[0]
        baseline = first.get("baseline")
        draw(
            folder / f"{section.name}.png",
            {_title(row): found[0] for row, found in records.items()},
            first["monitor"],
            baselines={"baseline": baseline} if baseline else None,
            ylabel=section.ylabel,
            log=section.log,
        )
        lines += ["", f"![{section.title}](results/{section.name}.png)"]
    seeds = sorted({record["settings"]["seed"] for record in everything})
    about = sorted({_about(record) for record in everything})
    title = "Seed" if len(seeds) == 1 else "Means of the seeds"
    return [
        *lines,
        "",
        f"({title} {', '.join(map(str, seeds))}; {'; '.join(about)}.)",
    ]


def _by_model(
    section: Section, records: Mapping[str, Sequence[Mapping[str, Any]]]
) -> list[str]:
    columns = list(
        dict.fromkeys(
            column
            for found in records.values()
            for record in found
            for column in record["figures"]
        )
    )
    head = ["model", "units", "parameters", "updates", *columns]
    lines = _head([*head, "published", "minutes"])
    for row, found in records.items():
        units = found[0]["settings"]["units"]
        cells = [_title(row)]
        cells += ["/".join(map(str, units)) if isinstance(units, list) else str(units)]
        cells += [f"{found[0]['parameters']:,}", f"{found[0]['updates'][-1]:,}"]
        cells += [_mean(found, column) for column in columns]
        cells += [section.published.get(row, "")]
        cells += [f"{statistics.fmean(r['seconds'] for r in found) / 60:.3g}"]
        lines.append(_line(cells))
    return lines


def _across(
    section: Section, records: Mapping[str, Sequence[Mapping[str, Any]]]
) -> list[str]:
    models, names = (
        list(dict.fromkeys(row.partition(" ")[part] for row in section.models))
        for part in (0, 2)
    )
    lines = []
    for figure in section.across:
        lines += ["", f"The {ABOUT.get(figure, figure)}:", ""]
        lines += _head(["", *(f"{_title(model)}, published" for model in models)])
        for name in names:
            cells = [name]
            for model in models:
                row = f"{model} {name}"
                measured = _mean(records.get(row, ()), figure)
                cells.append(f"{measured}, {section.published.get(row, '')}")
            lines.append(_line(cells))
    return lines[1:]


def _head(titles: Sequence[str]) -> list[str]:
    return [_line(titles), "|---" * len(titles) + "|"]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _mean(found: Sequence[Mapping[str, Any]], figure: str) -> str:
    known = [r["figures"][figure] for r in found if figure in r["figures"]]
    return f"{statistics.fmean(known):.4g}" if known else ""


def _title(row: str) -> str:
    model, _, more = row.partition(" ")
    return f"{TITLES.get(model, model)} {more}".strip()


def _about(record: dict[str, Any]) -> str:
    return (
        f"commit {record['commit']}, {record['backend']} {record['backend_version']}, "
        f"Keras {record['keras']}, Python {record['python']}, {record['cores']} cores"
    )
