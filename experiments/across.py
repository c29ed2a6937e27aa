"""Tables of several models on many data sets, one for each figure."""

import statistics
from collections.abc import Mapping, Sequence

from experiments.comparison import Records, row_title, spread, values_of
from experiments.sections import Section
from experiments.tables import table

# Names of figures as titles of tables.
ABOUT = {
    "test accuracy there": "test accuracy at the best validation",
    "best test accuracy": "best test accuracy of all epochs",
}


def across_tables(section: Section, records: Mapping[str, Records]) -> list[str]:
    """Lays out a table of data sets by models for each figure of a section.

    Single data sets are in the first table only. The last rows have the means over the
    data sets on which all models have been run, for the section's own `seeds`, which
    all runs share, and the number of these data sets on which the published figure is
    within two standard deviations of the mean of all seeds.
    """
    models, names = (
        list(dict.fromkeys(row.partition(" ")[part] for row in section.models))
        for part in (0, 2)
    )
    titles = [f"{row_title(model)}, published" for model in models]
    lines = []
    for figure in section.across:
        rows = []
        for name in names if figure == section.across[0] else ():
            found = {model: records.get(f"{model} {name}", ()) for model in models}
            if not any(found.values()):  # Not run.
                continue
            cells = [name, spread(_constant(found))]
            for model in models:
                measured = spread(values_of(found[model], figure))
                published = section.published.get(f"{model} {name}", "")
                cells.append(f"{measured}, {published}")
            rows.append(cells)
        rows += _summary(section, records, figure, models, names)
        if not rows:
            continue
        lines += ["", f"The {ABOUT.get(figure, figure)}:", ""]
        lines += table(["", "most frequent class", *titles], rows)
    return lines[1:]


def _summary(
    section: Section,
    records: Mapping[str, Records],
    figure: str,
    models: Sequence[str],
    names: Sequence[str],
) -> list[list[str]]:
    """Returns the rows over all data sets on which every model ran from every seed."""
    # Some rows have more seeds; a seed's mean is over data sets that all have it.
    shared = {
        row: [r for r in found if r["settings"]["seed"] in section.seeds]
        for row, found in records.items()
    }
    seeds = len(section.seeds)
    whole = [
        name
        for name in names
        if all(len(shared.get(f"{m} {name}", ())) == seeds for m in models)
    ]
    kept = [name for name in whole if name not in section.apart]
    if not kept:
        return []
    without = " and ".join(name for name in whole if name in section.apart)
    title = f"mean of {len(kept)}" + (f", without {without}" if without else "")
    constant = [_constant({m: shared[f"{m} {name}"] for m in models}) for name in kept]
    means, near = (
        [f"**{title}**", spread(_each_seed(constant))],
        ["**published within two deviations**", ""],
    )
    for model in models:
        runs = [values_of(records[f"{model} {name}"], figure) for name in kept]
        published = [float(section.published[f"{model} {name}"]) for name in kept]
        of_seeds = [values_of(shared[f"{model} {name}"], figure) for name in kept]
        mean = spread(_each_seed(of_seeds))
        means.append(f"{mean}, {statistics.fmean(published):.3f}")
        within = [_is_near(*pair) for pair in zip(published, runs, strict=True)]
        near.append(f"{sum(within)} of {len(within)}")
    return [means, near]


def _is_near(published: float, values: Sequence[float]) -> bool:
    """Whether a figure with three decimals is within two deviations of the mean."""
    distance = abs(published - statistics.fmean(values))
    return distance <= 2 * statistics.stdev(values) + 0.0005


def _each_seed(runs: Sequence[Sequence[float]]) -> list[float]:
    """Returns, for each seed, the mean over all data sets, which is what varies."""
    return [statistics.fmean(seed) for seed in zip(*runs, strict=True)]


def _constant(found: Mapping[str, Records]) -> list[float]:
    """Returns the accuracy of the most frequent class in training, for each seed."""
    known = {
        record["settings"]["seed"]: 1 - record["baseline"]
        for records in found.values()
        for record in records
        if record.get("baseline") is not None
    }
    return [known[seed] for seed in sorted(known)]
