"""The report on recorded runs: `RESULTS.md`, and a figure for each section."""

import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.catalog import SECTIONS, Comparison, Section
from experiments.comparison import (
    Records,
    model_table,
    records_of,
    row_title,
    spread,
    values_of,
)
from experiments.records import draw, read_records
from experiments.tables import table
from keras_ortho.files import replacing
from keras_ortho.locks import locked

HEAD = """# Results

What the papers published, and what `python examples/reproduce.py` measured here. The
epoch is chosen on validation data; a figure chosen on the test data, as in some papers,
is called the best on the test data. `results/` holds the record of each run, with all
its settings, curves and versions. Where one seed is named, the spread over seeds was
not measured. Unless a line says otherwise, runs were made with
{usual}.

Run as long as the papers: copying over 2 000 steps (five of seven networks), scoRNN
with 170 units on pixel MNIST, scoRNN with 170 and the LSTM with 128 units on permuted
MNIST, rows of MNIST, 40 layers on MNIST. Everything else below is shorter or smaller
than its paper's. Not run at all: adding over 400 steps; scuRNN on adding over 750
steps, on permuted MNIST and on TIMIT, of which there is only a sample; ENRNN with
three layers, and by its number of short-term units; pixel CIFAR-10; svdRNN on
copying, on MNIST a pixel a step, on adding over 30, 100 and 300 steps, and with up to
100 layers; the times of an epoch on a GPU. `python examples/reproduce.py --set full
--list` lists every run; [catalog.py](experiments/catalog.py) has the published
figures of all.
"""
BACKENDS = {"tensorflow": "TensorFlow", "jax": "JAX", "torch": "PyTorch"}
# Figures of the tables with models side by side.
THERE, BEST = "test accuracy there", "best test accuracy"
ABOUT = {
    THERE: "test accuracy at the best validation",
    BEST: "best test accuracy of all epochs",
}


def write_report(folder: Path) -> None:
    """Writes `RESULTS.md`, and a figure for each section, from the records of runs.

    What `results/notes.md` has below a section's title is inserted below its table.
    """
    results = folder / "results"
    with locked(results, ".report.lock", wait=True):
        written = results / "notes.md"
        text = written.read_text("utf-8") if written.exists() else ""
        notes = dict(re.findall(r"^## (.*)\n+((?:(?!## ).*\n)*)", text, re.MULTILINE))
        made = Counter(
            _environment(record)
            for name in {run.records for each in SECTIONS for run in each.runs()}
            for record in read_records(results / name).values()
        )
        usual = made.most_common(1)[0][0] if made else ""
        parts = [HEAD.format(usual=usual or "nothing")]
        for section in SECTIONS:
            lines = (
                _section(section, results, usual)
                if isinstance(section, Section)
                else _comparison(section, results, usual)
            )
            if not lines:  # Not run.
                continue
            parts += [f"## {section.title}", "", *lines, ""]
            parts += [notes[section.title]] if section.title in notes else []
        with replacing(folder / "RESULTS.md") as aside:
            aside.write_text("\n".join(parts).rstrip("\n") + "\n", "utf-8")


def _comparison(section: Comparison, folder: Path, usual: str) -> list[str]:
    record = read_records(folder / f"{section.name}.json").get(section.name)
    if record is None:
        return []
    lines = []
    if section.table:
        written = folder / f"{section.name}-{section.table}"
        first, _, more = written.read_text("utf-8").partition("\n\n")
        lines += [*first.splitlines(), ""]
        if more:
            lines += [f"All tables are in `results/{written.name}`.", ""]
    for picture in section.pictures:
        lines += [f"![Curves](results/{section.name}-{picture})", ""]
    begin, count = record["settings"]["seed"], record["settings"].get("seeds", 1)
    return [*lines, _about(range(begin, begin + count), [record], usual)]


def _section(section: Section, folder: Path, usual: str) -> list[str]:
    found = {row: records_of(section, row, folder) for row in section.models}
    records = {row: of for row, of in found.items() if of}
    if not records:
        return []
    everything = [record for row in records.values() for record in row]
    if section.side_by_side:
        lines = _side_by_side(section, records)
    else:
        rows = {row_title(row): found for row, found in records.items()}
        published = {row_title(row): text for row, text in section.published.items()}
        first = everything[0]
        baseline = first.get("baseline")
        draw(
            folder / f"{section.name}.png",
            rows,
            first["monitor"],
            baselines={"baseline": baseline} if baseline else None,
            ylabel=section.ylabel,
            log=section.log,
        )
        lines = [*table(*model_table(rows, published)), ""]
        lines += [f"![Curves](results/{section.name}.png)"]
    seeds = sorted({record["settings"]["seed"] for record in everything})
    return [*lines, "", _about(seeds, everything, usual)]


def _about(seeds: Sequence[int], records: Records, usual: str) -> str:
    """Names the seeds and commits of records, and environments but the usual one."""
    title = "Means and standard deviations of the seeds" if len(seeds) > 1 else "Seed"
    commits: dict[str, set[str]] = {}
    for record in records:
        commits.setdefault(_environment(record), set()).add(record["commit"])
    made = "; ".join(
        f"commit{'s' * (len(found) > 1)} {', '.join(sorted(found))}"
        + (f"; {where}" if where != usual else "")
        for where, found in sorted(commits.items())
    )
    return f"({title} {', '.join(map(str, seeds))}; {made}.)"


def _environment(record: Mapping[str, Any]) -> str:
    return (
        f"{BACKENDS[record['backend']]} {record['backend_version']}, "
        f"Keras {record['keras']}, Python {record['python']}, "
        f"a machine with {record['cores']} cores"
    )


def _side_by_side(section: Section, records: Mapping[str, Records]) -> list[str]:
    """Lays out a table of data sets by models for each of two figures.

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
    for figure in (THERE, BEST):
        rows = []
        for name in names if figure == THERE else ():
            found = {model: records.get(f"{model} {name}", ()) for model in models}
            if not any(found.values()):  # Not run.
                continue
            cells = [name, spread(_constant(found))]
            for model in models:
                measured = spread(values_of(found[model], figure))
                published = section.published.get(f"{model} {name}", "")
                cells.append(f"{measured}, {published}")
            rows.append(cells)
        rows += _over_data_sets(section, records, figure, models, names)
        if rows:
            lines += ["", f"The {ABOUT[figure]}:", ""]
            lines += table(["", "most frequent class", *titles], rows)
    return lines[1:]


def _over_data_sets(
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
    whole = [
        name
        for name in names
        if all(len(shared.get(f"{m} {name}", ())) == len(section.seeds) for m in models)
    ]
    kept = [name for name in whole if name not in section.apart]
    if not kept:
        return []
    without = " and ".join(name for name in whole if name in section.apart)
    title = f"mean of {len(kept)}" + (f", without {without}" if without else "")
    constant = [_constant({m: shared[f"{m} {name}"] for m in models}) for name in kept]
    means = [f"**{title}**", spread(_each_seed(constant))]
    near = ["**published within two deviations**", ""]
    for model in models:
        runs = [values_of(records[f"{model} {name}"], figure) for name in kept]
        published = [float(section.published[f"{model} {name}"]) for name in kept]
        of_seeds = [values_of(shared[f"{model} {name}"], figure) for name in kept]
        mean = spread(_each_seed(of_seeds))
        means.append(f"{mean}, {statistics.fmean(published):.3f}")
        # The published figures have three decimals.
        within = [
            abs(figure - statistics.fmean(values))
            <= 2 * statistics.stdev(values) + 0.0005
            for figure, values in zip(published, runs, strict=True)
        ]
        near.append(f"{sum(within)} of {len(within)}")
    return [means, near]


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
