"""Which runs make up the papers' tables and figures, and the report on them."""

import json
import shlex
from collections.abc import Sequence
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
        models: Arguments of each model besides.
        published: What the paper reports of each model.
        set: The smallest set that the section belongs to, one of `SETS`.
        data: Folder of the data that it needs, below the one of all data.
        ylabel: Label of the figure.
        log: Whether its axis is logarithmic.
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

    @property
    def name(self) -> str:
        """Names the section, for its files."""
        return "-".join(self.title.lower().replace(",", "").replace("=", "").split())


@dataclass(frozen=True)
class Run:
    """A run of one of the examples.

    Attributes:
        section: The section that it belongs to.
        model: Its model.
    """

    section: Section
    model: str

    @property
    def name(self) -> str:
        """Names the run, for its files."""
        return f"{self.section.name}-{self.model}"

    @property
    def arguments(self) -> list[str]:
        """The arguments of the example, but for folders."""
        given = f"{self.section.arguments} {self.section.models[self.model]}"
        return ["--model", self.model, *shlex.split(given)]


PAPER = "--preset paper"

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
            # Without a diffusion that forgets the first number.
            "antisymmetric": "--units 128 --argument diffusion=0.001",
            "svdrnn": PAPER,
            "ornn": PAPER,
            "restricted-urnn": "--units 128",
            # The paper's rate, 1e-5, takes many more epochs.
            "full-urnn": "--units 120 --unitary-rate 'stiefel 1e-3'",
            "eurnn": "--units 128 --argument style=fft",
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
        Run(section, model)
        for section in SECTIONS
        if section.set in held
        for model in section.models
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
        records = {}
        for model in section.models:
            path = folder / "results" / f"{Run(section, model).name}.json"
            if path.exists():
                records[model] = json.loads(path.read_text())
        if records:
            parts.append(_section(section, records, folder / "results"))
    with replacing(folder / "RESULTS.md") as aside:
        aside.write_text("\n".join(parts))


def _section(section: Section, records: dict[str, Any], folder: Path) -> str:
    titles = {model: TITLES.get(model, model) for model in records}
    columns = list(dict.fromkeys(c for r in records.values() for c in r["figures"]))
    head = ["model", "units", "parameters", "updates", *columns]
    head += ["published", "minutes"]
    lines = [
        f"## {section.title}\n",
        "| " + " | ".join(head) + " |",
        "|---" * len(head) + "|",
    ]
    for model, record in records.items():
        units = record["settings"].get("units", "")
        cells = [
            titles[model],
            "/".join(map(str, units if isinstance(units, list) else [units])),
        ]
        cells += [f"{record['parameters']:,}", f"{record['updates'][-1]:,}"]
        cells += [_number(record["figures"].get(column)) for column in columns]
        cells += [section.published.get(model, ""), f"{record['seconds'] / 60:.1f}"]
        lines.append("| " + " | ".join(cells) + " |")
    first = next(iter(records.values()))
    baseline = first.get("baseline")
    draw(
        folder / f"{section.name}.png",
        {titles[model]: record for model, record in records.items()},
        first["monitor"],
        baselines={"baseline": baseline} if baseline else None,
        ylabel=section.ylabel,
        log=section.log,
    )
    lines += ["", f"![{section.title}](results/{section.name}.png)", ""]
    about = sorted({_about(record) for record in records.values()})
    lines += [f"(Seed {first['settings']['seed']}; {'; '.join(about)}.)", ""]
    notes = folder / f"{section.name}.md"
    if notes.exists():
        lines += [notes.read_text()]
    return "\n".join(lines)


def _about(record: dict[str, Any]) -> str:
    return (
        f"commit {record['commit']}, {record['backend']} {record['backend_version']}, "
        f"Keras {record['keras']}, Python {record['python']}, {record['cores']} cores"
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
