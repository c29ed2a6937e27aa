"""Which runs make up the papers' tables and figures, and the report on them."""

import json
import shlex
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keras_ortho.experiments.layers import TITLES
from keras_ortho.experiments.report import draw
from keras_ortho.files import replacing

SETS = ("quick", "standard", "full")
HEAD = """# Results

What the papers published, and what came out here: `python examples/reproduce.py`. The
epoch is chosen on validation data; a figure that is chosen on the test data, as some
papers do, is named the best on the test data. `results/` holds the record of each run
with all its settings, curves and versions.
"""


@dataclass(frozen=True)
class Section:
    """Runs that stand in one table and one figure.

    Attributes:
        title: Heading.
        script: The example, without `.py`.
        arguments: Arguments of all its runs.
        models: Arguments of each model besides, by its name; more words after the
            name tell its rows apart.
        published: What the paper reports, by the same names.
        set: The smallest set that the section belongs to, one of `SETS`.
        data: Folder of the data that it needs, below the one of all data.
        ylabel: Label of the figure.
        log: Whether its axis is logarithmic.
        picture: Whether there is a figure.
        seeds: The seeds of each run, whose figures the table gives the mean of.
    """

    title: str
    script: str
    arguments: str
    models: dict[str, str]
    published: dict[str, str]
    set: str = "standard"
    data: str = ""
    ylabel: str = "validation loss"
    log: bool = True
    picture: bool = True
    seeds: tuple[int, ...] = (0,)

    @property
    def name(self) -> str:
        """Names the section, for its files."""
        return "-".join(self.title.lower().replace(",", "").replace("=", "").split())


@dataclass(frozen=True)
class Run:
    """A run of one of the examples.

    Attributes:
        section: The section that it belongs to.
        row: Its row there.
        seed: Its seed.
    """

    section: Section
    row: str
    seed: int

    @property
    def model(self) -> str:
        """The name of its model."""
        return self.row.partition(" ")[0]

    @property
    def name(self) -> str:
        """Names the run, for its files."""
        words = [self.section.name, *self.row.lower().split()]
        if len(self.section.seeds) > 1:
            words.append(f"seed-{self.seed}")
        return "-".join(words)

    @property
    def arguments(self) -> list[str]:
        """The arguments of the example, but for folders."""
        given = f"{self.section.arguments} {self.section.models[self.row]}"
        seed = ["--seed", str(self.seed)]
        return ["--model", self.model, *shlex.split(given), *seed]


PAPER = "--preset paper"
# Accuracies of table 3 of Zhang et al.: RNN, LSTM, oRNN, svdRNN.
UCR = {
    "Adiac": (0.552, 0.706, 0.668, 0.726),
    "ArrowHead": (0.509, 0.537, 0.669, 0.800),
    "Beef": (0.600, 0.700, 0.733, 0.733),
    "BeetleFly": (0.950, 0.850, 0.900, 0.950),
    "CBF": (0.702, 0.967, 0.881, 0.948),
    "Coffee": (1.000, 1.000, 1.000, 1.000),
    "ECG200": (0.640, 0.640, 0.640, 0.640),
    "ECGFiveDays": (0.947, 0.790, 0.976, 0.948),
    "GunPoint": (0.947, 0.920, 0.953, 0.960),
    "ItalyPowerDemand": (0.970, 0.969, 0.972, 0.973),
}

SECTIONS = (
    Section(
        "Adding, T = 200, an epoch",
        "adding",
        "--preset paper --epochs 1",
        {"scornn": "", "lstm": ""},
        {},
        set="quick",
        ylabel="validation MSE",
    ),
    Section(
        "Adding, T = 200",
        "adding",
        "--epochs 3",
        {
            "scornn": PAPER,
            "scurnn": PAPER,
            "enrnn": PAPER,
            # Without rotations at the start that move what is remembered, and a
            # diffusion that forgets it.
            "antisymmetric-gated": "--units 128 --argument diffusion=0.001 --argument "
            "\"recurrent_initializer={'class_name': 'keras_ortho>AntisymmetricNormal', "
            "'config': {'sigma_w': 0.0}}\" --rate 'adam 1e-2' "
            "--recurrent-rate 'adam 1e-3'",
            "svdrnn": "--units 128 --argument reflections=16 --rate 'adam 1e-3' "
            "--recurrent-rate 'adam 1e-3'",
            "svdrnn as in the paper": PAPER,
            "ornn": PAPER,
            "restricted-urnn": "--units 128",
            # The paper's rate, 1e-5, takes many more epochs.
            "full-urnn": "--units 120 --unitary-rate 'stiefel 1e-2'",
            "eurnn": "--units 128 --argument style=fft --recurrent-rate 'rmsprop 1e-3'",
            "goru": "--units 128",
            "nnrnn": "--units 128",
            "factorized": "--units 128",
            "lstm": PAPER,
            "rnn": "--units 122",
        },
        {},
        ylabel="validation MSE",
    ),
    Section(
        "Adding, T = 750",
        "adding",
        "--preset paper --length 750 --epochs 6",
        dict.fromkeys(("scornn", "enrnn", "lstm"), ""),
        {},
        ylabel="validation MSE",
    ),
    Section(
        "Copying, T = 1000",
        "copying",
        "--preset paper --length 1000 --steps 4000",
        {"scornn": "", "full-urnn": "", "lstm": ""},
        {},
        ylabel="validation cross-entropy",
    ),
    Section(
        "Copying, T = 2000",
        "copying",
        "--preset paper --length 2000 --steps 2000",
        {"scornn": "", "scurnn": "", "enrnn": "", "lstm": ""},
        {},
        ylabel="validation cross-entropy",
    ),
    *(
        Section(
            f"{title}, {epochs} epochs",
            script,
            f"--preset paper --epochs {epochs}",
            dict.fromkeys(published, ""),
            published,
            set=chosen,
            data="mnist",
            ylabel="validation error rate",
        )
        for chosen, epochs in (("standard", 5), ("full", 70))
        for title, script, published in (
            ("Pixel MNIST", "mnist", {"scornn": "accuracy 0.973"}),
            (
                "Permuted MNIST",
                "permuted_mnist",
                {"scornn": "accuracy 0.943", "lstm": "accuracy 0.920"},
            ),
        )
    ),
    Section(
        "UCR",
        "ucr",
        PAPER,
        {
            f"{model} {name}": f"--name {name}"
            for name in UCR
            for model in ("rnn", "lstm", "ornn", "svdrnn")
        },
        {
            f"{model} {name}": f"accuracy {accuracy:.3f}"
            for name, accuracies in UCR.items()
            for model, accuracy in zip(
                ("rnn", "lstm", "ornn", "svdrnn"), accuracies, strict=True
            )
        },
        data="ucr",
        picture=False,
        seeds=(0, 1, 2),
    ),
)


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
        run for section in SECTIONS if section.set in held for run in _runs(section)
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
    parts = [HEAD]
    for section in SECTIONS:
        records: dict[str, list[dict[str, Any]]] = {}
        for run in _runs(section):
            path = folder / "results" / f"{run.name}.json"
            if path.exists():
                records.setdefault(run.row, []).append(json.loads(path.read_text()))
        if records:
            parts.append(_section(section, records, folder / "results"))
    with replacing(folder / "RESULTS.md") as aside:
        aside.write_text("\n".join(parts))


def _runs(section: Section) -> list[Run]:
    return [Run(section, row, seed) for row in section.models for seed in section.seeds]


def _section(
    section: Section, records: dict[str, list[dict[str, Any]]], folder: Path
) -> str:
    everything = [record for row in records.values() for record in row]
    columns = list(dict.fromkeys(c for record in everything for c in record["figures"]))
    head = ["model", "units", "parameters", "updates", *columns]
    head += ["published", "minutes"]
    lines = [
        f"## {section.title}\n",
        "| " + " | ".join(head) + " |",
        "|---" * len(head) + "|",
    ]
    for row, found in records.items():
        units = found[0]["settings"]["units"]
        cells = [_title(row)]
        cells += ["/".join(map(str, units)) if isinstance(units, list) else str(units)]
        cells += [f"{found[0]['parameters']:,}", f"{found[0]['updates'][-1]:,}"]
        cells += [
            _mean(record["figures"].get(column) for record in found)
            for column in columns
        ]
        cells += [section.published.get(row, "")]
        cells += [_mean(record["seconds"] / 60 for record in found)]
        lines.append("| " + " | ".join(cells) + " |")
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
    lines += ["", f"({title} {', '.join(map(str, seeds))}; {'; '.join(about)}.)", ""]
    notes = folder / f"{section.name}.md"
    if notes.exists():
        lines += [notes.read_text()]
    return "\n".join(lines)


def _title(row: str) -> str:
    model, _, more = row.partition(" ")
    return f"{TITLES.get(model, model)} {more}".strip()


def _about(record: dict[str, Any]) -> str:
    return (
        f"commit {record['commit']}, {record['backend']} {record['backend_version']}, "
        f"Keras {record['keras']}, Python {record['python']}, {record['cores']} cores"
    )


def _mean(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{statistics.fmean(known):.4g}" if known else ""
