"""The table and the figure of several models on one task."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.catalog import SECTIONS, Section
from experiments.layers import title_of, units_text
from experiments.options import SIZES
from experiments.records import draw, read_records
from experiments.tables import write_table

# One record per seed.
Records = Sequence[Mapping[str, Any]]

RESULTS = Path(__file__).resolve().parents[1] / "results"
TABLE, PICTURE = "comparison.md", "comparison.png"
# Settings that identify the data. Networks can be compared if these are equal.
DATA = ("task", "length", "name", "unroll", "fixed_noise", "fixed_order", *SIZES)
# Entries that a record needs for a row of the table.
NEEDED = ("figures", "monitor", "parameters", "updates", "seconds")


def write_comparison(folder: Path, records: Records, results: Path = RESULTS) -> str:
    """Writes `comparison.md` and `comparison.png`: runs beside recorded ones."""
    first = records[0]
    title = title_of(first["settings"]["model"])
    own = f"{title} (here)"
    rows: dict[str, Records] = {own: records}
    for name, found in recorded(first, results):
        # Two runs of one model are told apart by their number of updates.
        known = f"{name}, {found[0]['updates'][-1]:,} updates"
        rows[known if name in rows else name] = found
    if len(rows) == len(records) == 1:
        return ""
    baseline = first.get("baseline")
    draw(
        folder / PICTURE,
        {name: of for name, of in rows.items() if "curves" in of[0]},
        first["monitor"],
        baselines={"baseline": baseline} if baseline else None,
        emphasized=own,
        ylabel=f"validation {first['monitor'].replace('_', ' ')}",
        log=first["monitor"] != "bits_per_character",
    )
    return write_table(folder / TABLE, *model_table(rows))


def recorded(like: Mapping[str, Any], results: Path) -> Iterator[tuple[str, Records]]:
    """Finds the records of networks that were trained on the same data."""
    wanted = _data(like)
    script = like["settings"]["task"].replace("-", "_")
    for section in SECTIONS:
        if not isinstance(section, Section) or section.script != script:
            continue
        for row in section.models:
            found = records_of(section, row, results)
            if found and _data(found[0]) == wanted:
                yield row_title(row), found


def records_of(section: Section, row: str, results: Path) -> list[dict[str, Any]]:
    """Reads the existing records of a row of a section, one per seed."""
    found = read_records(results / section.records, NEEDED)
    names = [section.run_name(row, seed) for seed in section.seeds_of(row)]
    return [found[name] for name in names if name in found]


def _data(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the data settings of a record; options that it predates are off."""
    return {name: record["settings"].get(name) or None for name in DATA}


def row_title(row: str) -> str:
    """Returns the title of a section's row: the model, and what tells it apart."""
    model, _, more = row.partition(" ")
    return f"{title_of(model)} {more}".strip()


def model_table(
    rows: Mapping[str, Records],
    published: Mapping[str, str] | None = None,
) -> tuple[list[str], list[list[str]]]:
    """Makes the column titles and the rows of a table with a row for each model."""
    everything = [record for found in rows.values() for record in found]
    names = dict.fromkeys(name for r in everything for name in r["figures"])
    columns = [name for name in names if not name.startswith("last ")]
    titles = ["model", "units", "parameters", "seeds", "updates", *columns]
    titles += ["published"] if published else []
    return [*titles, "minutes"], [
        [
            title,
            units_text(found[0]["settings"]["units"]),
            f"{found[0]['parameters']:,}",
            str(len(found)),
            f"{found[0]['updates'][-1]:,}",
            *(spread(values_of(found, column)) for column in columns),
            *([published.get(title, "")] if published else []),
            f"{statistics.fmean(r['seconds'] for r in found) / 60:.3g}",
        ]
        for title, found in rows.items()
    ]


def spread(values: Sequence[float]) -> str:
    """Formats figures as their mean, with the standard deviation if they differ."""
    if not values:
        return ""
    mean = f"{statistics.fmean(values):.4g}"
    if len(set(values)) == 1:
        return mean
    return f"{mean} ± {statistics.stdev(values):.2g}"


def values_of(records: Records, figure: str) -> list[float]:
    """Lists a figure of each record that has it."""
    return [r["figures"][figure] for r in records if figure in r["figures"]]
