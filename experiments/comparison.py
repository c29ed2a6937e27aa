"""The table and the figure of several models on one task."""

import statistics
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from experiments.catalog import SECTIONS, Section
from experiments.layers import title_of, units_text
from experiments.options import SIZES
from experiments.records import Records, draw, read_records
from experiments.tables import write_table

RESULTS = Path(__file__).resolve().parents[1] / "results"
# Settings that identify the data. Networks can be compared if these are equal.
DATA = ("task", "length", "name", "unroll", "fixed_noise", "fixed_order", *SIZES)


def write_comparison(folder: Path, records: Records, results: Path = RESULTS) -> str:
    """Writes `comparison.md` and `comparison.png`: runs beside recorded ones."""
    first = records[0]
    own = f"{title_of(first['settings']['model'])} (here)"
    rows = {own: records, **recorded(first, results)}
    if len(rows) == len(records) == 1:
        return ""
    curves = {name: of for name, of in rows.items() if "curves" in of[0]}
    log = first["monitor"] != "bits_per_character"
    draw(folder / "comparison.png", curves, emphasized=own, log=log)
    return write_table(folder / "comparison.md", *model_table(rows))


def recorded(like: Mapping[str, Any], results: Path) -> dict[str, Records]:
    """Finds the records of networks that were trained on the same data."""
    rows: dict[str, Records] = {}
    for section in SECTIONS:
        if section.example != like["settings"]["task"].replace("-", "_"):
            continue
        for row, found in records_of(section, results).items():
            if _data(found[0]) == _data(like):
                # Two runs of one model are told apart by their number of updates.
                known = f"{row_title(row)}, {found[0]['updates'][-1]:,} updates"
                rows[known if row_title(row) in rows else row_title(row)] = found
    return rows


def records_of(section: Section, results: Path) -> dict[str, Records]:
    """Reads the records of a section, by the keys of its models, one per seed."""
    found = read_records(results / section.records)
    rows = {
        row: [found[name] for name in section.run_names(row) if name in found]
        for row in section.models or [""]
    }
    return {row: records for row, records in rows.items() if records}


def _data(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the data settings of a record; options that it predates are off."""
    return {name: record["settings"].get(name) or None for name in DATA}


def row_title(row: str) -> str:
    """Returns the title of a section's row: the model, and what tells it apart."""
    model, _, more = row.partition(" ")
    return f"{title_of(model)} {more}".strip()


def model_table(
    rows: Mapping[str, Records], published: Mapping[str, str] | None = None
) -> tuple[list[str], list[list[str]]]:
    """Makes the titles and the rows of a table of models; the first names the figure.

    There is a column of seeds if a model has several.
    """
    everything = [record for found in rows.values() for record in found]
    names = dict.fromkeys(name for r in everything for name in r["figures"])
    there = next(name for name in names if name.endswith(" there"))
    figure = there.removeprefix("test ").removesuffix(" there")
    # "Last" figures have no column.
    known = {f"best validation {figure}": "validation", there: "test"}
    known[f"best test {figure}"] = "best test"
    controls = [name for name in names if name.startswith(f"{figure}, ")]
    known |= {name: name.removeprefix(f"{figure}, ") for name in controls}
    columns = {name: title for name, title in known.items() if name in names}
    several = ["seeds"] * any(len(found) > 1 for found in rows.values())
    shown = ["published"] * bool(published)
    titles = [f"model, {figure}", "units", "parameters", *several, "updates"]
    return [*titles, *columns.values(), *shown, "minutes"], [
        [
            title,
            units_text(found[0]["settings"]["units"]),
            f"{found[0]['parameters']:,}",
            *(str(len(found)) for _ in several),
            f"{found[0]['updates'][-1]:,}",
            *(
                spread([r["figures"][name] for r in found if name in r["figures"]])
                for name in columns
            ),
            *((published or {})[title] for _ in shown),
            f"{statistics.fmean(r['seconds'] for r in found) / 60:.3g}",
        ]
        for title, found in rows.items()
    ]


def spread(values: Collection[float]) -> str:
    """Formats figures as their mean, with the standard deviation if they differ."""
    if not values:
        return ""
    mean = f"{statistics.fmean(values):.4g}"
    return mean + (f" ± {statistics.stdev(values):.2g}" if len({*values}) > 1 else "")
