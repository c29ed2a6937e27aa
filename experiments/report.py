"""The report on recorded runs: `RESULTS.md`, and a figure for each section."""

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.catalog import SECTIONS, Section
from experiments.comparison import model_table, records_of, row_title, spread
from experiments.records import Records, draw
from experiments.tables import table
from keras_ortho.files import locked, replacing

HEAD = """# Results

Published figures, and what `python examples/reproduce.py` measured. "Test" is that of
the epoch that is best on validation data, "best test" that of the best epoch on test
data, as some papers have it. Unless said otherwise, runs were made with
{usual}.

As long as in the papers are only copying over 2 000 steps (five of eight networks),
adding over 400 (scoRNN and LSTM) and 750 in one order, scoRNN with 170 units on pixel
MNIST, scoRNN with 170 and the LSTM with 128 units on permuted MNIST, rows of MNIST, 40
layers on MNIST. Not run: all networks with a preset and no row below
(`make reproduce SET=full LIST=1`), such as up to 512 units on MNIST and most on text;
TIMIT, but for a sample (published: scoRNN 8.50, 7.82, 7.36, LSTM 14.30, 12.95, 12.62
dB², at ICLR 17.18, 15.91, 16.06); three layers on text (ENRNN 1.297, LSTM 1.293);
numbers of short-term units; pixel CIFAR-10 (0.587, with gates 0.622), figures 3 to 5 of
Chang et al.; IRNN, figure 2c to f of Zhang et al.; svdRNN on copying, pixels of MNIST,
adding over 30, 100 and 300 steps, with up to 100 layers, and its alternatives, clipping
of singular values and a penalty; BNP's figure 3.1; times on a GPU. The papers' settings
are in [presets.toml](experiments/presets.toml). The history no longer has commits
06c8180b21 and 0c66b6b6f7."""
BACKENDS = {"tensorflow": "TensorFlow", "jax": "JAX", "torch": "PyTorch"}


def write_report(folder: Path) -> None:
    """Writes `RESULTS.md`, with `results/notes.md`, and figures, from the records."""
    results = folder / "results"
    with locked(results, ".report.lock", wait=True):
        written = results / "notes.md"
        text = written.read_text("utf-8") if written.exists() else ""
        notes = dict(re.findall(r"^## (.*)\n+((?:(?!## ).*\n)*)", text, re.MULTILINE))
        found = [(section, records_of(section, results)) for section in SECTIONS]
        every = [r for _, rows in found for records in rows.values() for r in records]
        made = Counter(map(_environment, every))
        usual = made.most_common(1)[0][0] if made else "nothing"
        parts = [HEAD.format(usual=usual)]
        for section, rows in found:
            if rows:
                lines = [f"## {section.title}", "", *_lines(section, rows, results)]
                lines += [_about([r for of in rows.values() for r in of], usual), ""]
                lines += [notes.get(section.title, "")]
                parts.append("\n".join(lines).rstrip())
        with replacing(folder / "RESULTS.md") as aside:
            aside.write_text("\n\n".join(parts) + "\n", "utf-8")


def _lines(
    section: Section, found: Mapping[str, Records], results: Path
) -> Iterator[str]:
    """Lays out the table and the figures of a section, with a blank line after each."""
    pictures = [f"{section.name}-{picture}" for picture in section.pictures]
    if section.data_sets:
        yield from _side_by_side(section, found)
    elif section.models:
        rows = {row_title(row): records for row, records in found.items()}
        published = {row_title(row): section.published(row) for row in found}
        shown = published if any(published.values()) else None
        pictures = [f"{section.name}.png"]
        ylabel = f"validation {section.figure}"
        draw(results / pictures[0], rows, ylabel=ylabel, log=section.log)
        yield from [*table(*model_table(rows, shown)), ""]
    elif section.table:
        written = f"{section.name}-{section.table}"
        first, _, more = (results / written).read_text("utf-8").partition("\n\n")
        yield from [first.rstrip("\n"), ""]
        if more:
            yield from [f"All tables: `results/{written}`", ""]
    for picture in pictures:
        yield from [f"![Curves](results/{picture})", ""]


def _about(records: Records, usual: str) -> str:
    """Names the seeds and commits of records, and environments but the usual one."""
    settings = [record["settings"] for record in records]
    begin = min(each["seed"] for each in settings)
    last = max(each["seed"] + (each.get("seeds") or 1) - 1 for each in settings)
    seeds = f"Mean ± deviation of seeds {begin} to {last}"
    commits: dict[str, set[str]] = {}
    for record in records:
        commit = record["commit"] or "unknown"  # Outside of a git checkout.
        commits.setdefault(_environment(record), set()).add(commit)
    made = "; ".join(
        f"commit{'s' * (len(found) > 1)} {', '.join(sorted(found))}"
        + (f"; {where}" if where != usual else "")
        for where, found in sorted(commits.items())
    )
    return f"({seeds if last > begin else f'Seed {begin}'}; {made}.)"


def _environment(record: Mapping[str, Any]) -> str:
    return (
        f"{BACKENDS[record['backend']]} {record['backend_version']}, "
        f"Keras {record['keras']}, Python {record['python']}, "
        f"a machine with {record['cores']} cores"
    )


def _side_by_side(section: Section, records: Mapping[str, Records]) -> Iterator[str]:
    """Lays out a table of data sets by models, with the published figures."""
    there = _values(section, records, "test accuracy there")
    best = _values(section, records, "best test accuracy")
    rows = []
    for name, (constant, *models) in there.items():
        papers = section.data_sets[name]
        pairs = zip(models, papers, strict=True)
        cells = [f"{spread(of.values())}, {paper:.3f}" for of, paper in pairs]
        rows.append([name, spread(constant.values()), *cells])
    rows += [*_means(section, there), *_means(section, best, "best test, ")]
    titles = [f"{row_title(model)}, published" for model in section.side_by_side]
    yield from table(["test accuracy", "most frequent class", *titles], rows)
    yield ""


def _values(
    section: Section, records: Mapping[str, Records], figure: str
) -> dict[str, list[dict[int, float]]]:
    """Returns figures by seed for each set, of the most frequent class and models."""
    found = {}
    for name in section.data_sets:
        models = [records.get(f"{model} {name}", ()) for model in section.side_by_side]
        known = [r for of in models for r in of if r.get("baseline") is not None]
        found[name] = [{r["settings"]["seed"]: 1 - r["baseline"] for r in known}]
        for of in models:
            values = {r["settings"]["seed"]: r["figures"][figure] for r in of}
            found[name].append(values)
    return {name: values for name, values in found.items() if any(values[1:])}


def _means(
    section: Section, values: Mapping[str, Sequence[dict[int, float]]], prefix: str = ""
) -> Iterator[list[str]]:
    """Yields the rows over all data sets on which every model ran from every seed.

    They are the means, and the number of sets whose published figure is within two
    standard deviations of the mean of all seeds.
    """
    seeds = range(section.seeds)
    whole = [n for n, (_, *of) in values.items() if all({*seeds} <= {*v} for v in of)]
    kept = [name for name in whole if name not in section.apart]
    if not kept:
        return
    without = " and ".join(name for name in whole if name in section.apart)
    title = f"mean of {len(kept)}" + (f", without {without}" if without else "")
    constant, *models = zip(*(values[name] for name in kept), strict=True)
    means = [f"**{prefix}{title}**", _mean(constant, seeds) if all(constant) else ""]
    near = [f"**{prefix}published within two deviations**", ""]
    for i, column in enumerate(models):
        papers = [section.data_sets[name][i] for name in kept]
        means.append(f"{_mean(column, seeds)}, {statistics.fmean(papers):.3f}")
        # The published figures have three decimals.
        within = [
            abs(paper - statistics.fmean(of.values()))
            <= 2 * statistics.stdev(of.values()) + 0.0005
            for paper, of in zip(papers, column, strict=True)
        ]
        near.append(f"{sum(within)} of {len(within)}")
    yield from (means, near)


def _mean(column: Sequence[Mapping[int, float]], seeds: Iterable[int]) -> str:
    """Formats the mean over data sets, which is what varies with the seed."""
    return spread([statistics.fmean(of[seed] for of in column) for seed in seeds])
