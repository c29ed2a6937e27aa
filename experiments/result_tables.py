"""Tables of the records of runs, in Markdown."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.layers import TITLES
from experiments.sections import Section

# The records of each row of a section, one for each seed.
Records = Mapping[str, Sequence[Mapping[str, Any]]]

# Figures as a table by itself calls them.
ABOUT = {
    "test accuracy there": "test accuracy at the best validation",
    "best test accuracy": "best test accuracy of all epochs",
}


def table(section: Section, records: Records) -> list[str]:
    """Writes the table of a section.

    A figure of several seeds is their mean, with the standard deviation of one seed
    after it.

    Args:
        section: The section.
        records: The records of its rows.

    Returns:
        Lines of Markdown.
    """
    return (_across if section.across else _by_model)(section, records)


def row_title(row: str) -> str:
    """Names a row: the model, and what tells it apart.

    Args:
        row: The key of `Section.models`.

    Returns:
        The title.

    Example:
    >>> row_title("svdrnn as in the paper")
    'svdRNN as in the paper'
    """
    model, _, more = row.partition(" ")
    return f"{TITLES.get(model, model)} {more}".strip()


def _by_model(section: Section, records: Records) -> list[str]:
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
        cells = [row_title(row)]
        cells += ["/".join(map(str, units)) if isinstance(units, list) else str(units)]
        cells += [f"{found[0]['parameters']:,}", f"{found[0]['updates'][-1]:,}"]
        cells += [spread(_values(found, column)) for column in columns]
        cells += [section.published.get(row, "")]
        cells += [f"{statistics.fmean(r['seconds'] for r in found) / 60:.3g}"]
        lines.append(_line(cells))
    return lines


def _across(section: Section, records: Records) -> list[str]:
    models, names = (
        list(dict.fromkeys(row.partition(" ")[part] for row in section.models))
        for part in (0, 2)
    )
    lines = []
    for figure in section.across:
        lines += ["", f"The {ABOUT.get(figure, figure)}:", ""]
        titles = [f"{row_title(model)}, published" for model in models]
        lines += _head(["", "most frequent class", *titles])
        for name in names:
            found = {model: records.get(f"{model} {name}", ()) for model in models}
            cells = [name, spread(_constant(found))]
            for model in models:
                measured = spread(_values(found[model], figure))
                published = section.published.get(f"{model} {name}", "")
                cells.append(f"{measured}, {published}")
            lines.append(_line(cells))
        kept = [name for name in names if name not in section.apart]
        lines.append(_line(_means(section, records, figure, models, kept)))
    return lines[1:]


def _means(
    section: Section,
    records: Records,
    figure: str,
    models: Sequence[str],
    names: Sequence[str],
) -> list[str]:
    """The row of means over names, where all have been run."""
    apart = [name for name in section.apart if name not in names]
    title = " without ".join(["mean", " and ".join(apart)]) if apart else "mean"
    cells = [f"**{title}**"]
    constant = [
        _constant({model: records.get(f"{model} {name}", ()) for model in models})
        for name in names
    ]
    cells.append(spread(_over_names(constant, len(section.seeds))))
    for model in models:
        found = [records.get(f"{model} {name}", ()) for name in names]
        runs = [_values(each, figure) for each in found]
        published = [section.published.get(f"{model} {name}") for name in names]
        known = [float(value) for value in published if value]
        whole = f"{statistics.fmean(known):.3f}" if len(known) == len(names) else ""
        cells.append(f"{spread(_over_names(runs, len(section.seeds)))}, {whole}")
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


def spread(values: Sequence[float]) -> str:
    """Writes figures as their mean, and of different ones the standard deviation.

    Args:
        values: A figure of each seed.

    Returns:
        Text, empty where there is none.

    Example:
    >>> spread([0.7, 0.8, 0.75]), spread([0.5, 0.5]), spread([])
    ('0.75 ± 0.05', '0.5', '')
    """
    if not values:
        return ""
    mean = f"{statistics.fmean(values):.4g}"
    if len(set(values)) == 1:
        return mean
    return f"{mean} ± {statistics.stdev(values):.2g}"


def _values(found: Sequence[Mapping[str, Any]], figure: str) -> list[float]:
    return [r["figures"][figure] for r in found if figure in r["figures"]]


def _head(titles: Sequence[str]) -> list[str]:
    return [_line(titles), "|---" * len(titles) + "|"]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
