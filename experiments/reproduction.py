"""The runs of a set of sections, and the report on them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.records import draw, read_record
from experiments.result_tables import row_title, table
from experiments.sections import Comparison, Run, Section
from experiments.tables import SECTIONS
from keras_ortho.files import remove_asides, replacing
from keras_ortho.locks import locked

SETS = ("quick", "standard", "full")
HEAD = """# Results

What the papers published, and what came out here: `python examples/reproduce.py`. The
epoch is chosen on validation data; a figure that is chosen on the test data, as some
papers do, is named the best on the test data. `results/` holds the record of each run
with all its settings, curves and versions. Where one seed is named, how far another
would differ has not been measured.
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
        folder: Folder that holds `results`. Of several processes that report on the
            same, one waits for the other: the last has all records.

    Raises:
        ValueError: If a record is damaged. The message names it.
    """
    with locked(folder / "results", ".report.lock", wait=True):
        for name in ("RESULTS.md", *(f"results/{s.name}.png" for s in SECTIONS)):
            remove_asides(folder / name)
        _write_report(folder)


def _write_report(folder: Path) -> None:
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
    record = read_record(path)
    lines = []
    if section.table:
        table = folder / f"{section.name}-{section.table}"
        lines += [*table.read_text().splitlines(), ""]
    for picture in section.pictures:
        lines += [f"![{section.title}](results/{section.name}-{picture})", ""]
    return [*lines, f"(Seed {record['settings']['seed']}; {_about(record)}.)"]


def _section(section: Section, folder: Path) -> list[str]:
    records: dict[str, list[dict[str, Any]]] = {}
    names = ["figures"]
    if not section.across:
        names += ["settings.units", "parameters", "updates", "seconds"]
    if section.picture:
        names += ["monitor", "curves", "updates"]
    for row in section.models:
        paths = [folder / f"{section.record(row, s)}.json" for s in section.seeds]
        found = [read_record(p, names) for p in paths if p.exists()]
        if found:
            records[row] = found
    if not records:
        return []
    everything = [record for row in records.values() for record in row]
    lines = table(section, records)
    if section.picture:
        first = everything[0]
        baseline = first.get("baseline")
        draw(
            folder / f"{section.name}.png",
            {row_title(row): found[0] for row, found in records.items()},
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
