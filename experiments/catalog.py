"""The sections for the papers' tables and figures, their runs, and the sets of runs."""

import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.layers import units_text
from experiments.presets import PRESETS

# Each contains those before it.
SETS = ("quick", "standard", "full")


@dataclass(frozen=True)
class Section:
    """A section of the report, with its runs: `catalog.toml` describes its entries."""

    title: str
    example: str
    arguments: str = ""
    models: Mapping[str, str] = field(default_factory=dict)
    set: str = "standard"
    figure: str = ""
    log: bool = True
    data: str = ""
    data_option: str = "--data-dir"
    record: str = "run.json"
    table: str = ""
    pictures: Sequence[str] = ()
    others: Sequence[str] = ()
    seeds: int = 1
    more_seeds: int = 0
    slow: Sequence[str] = ()
    apart: Sequence[str] = ()
    side_by_side: Sequence[str] = ()
    data_sets: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the section, used for its files."""
        words = self.title.lower().replace(",", "").replace("=", "").split()
        return "-".join(words)

    @property
    def records(self) -> str:
        """Name of the file with all its records."""
        return f"{self.name}.json"

    @property
    def files(self) -> dict[str, str]:
        """Names of a run's other result files, and what they are called there."""
        files = filter(None, [*self.pictures, self.table, *self.others])
        return {file: f"{self.name}-{file}" for file in files}

    def run_names(self, row: str) -> list[str]:
        """Lists the names of the runs of a key of `models`, one per seed."""
        name = "-".join([self.name, *row.lower().split()])
        is_slow = {*row.split()} & {*self.slow}
        seeds = self.seeds if is_slow else max(self.seeds, self.more_seeds)
        return [f"{name}-seed-{n}" for n in range(seeds)] if seeds > 1 else [name]

    def published(self, row: str) -> str:
        """Returns the published figure of a key of `models` with a paper's rates."""
        given = shlex.split(f"{self.arguments} {self.models[row]} --units ''")
        if "--preset" not in given or "--rate" in given:
            return ""
        key = self.example.replace("_", "-"), row.split()[0]
        units = given[given.index("--units") + 1]
        rows = [preset for preset in PRESETS if (preset.task, preset.model) == key]
        return next(p.published for p in rows if units in ("", units_text(p.units)))

    def runs(self) -> "list[Run]":
        """Lists its runs, model by model."""
        if not self.models:
            return [Run(self.name, shlex.split(self.arguments), self)]
        return [
            Run(name, shlex.split(f"{given} --seed {seed}"), self)
            for row, more in self.models.items()
            for given in [f"--model {row.split()[0]} {self.arguments} {more}"]
            for seed, name in enumerate(self.run_names(row))
        ]


@dataclass(frozen=True)
class Run:
    """A run of one of the examples."""

    name: str
    arguments: list[str]
    section: Section

    def lacks(self, data_dir: Path | None) -> str:
        """Returns the part of all data that it needs, if it is not there."""
        there = data_dir and (data_dir / self.section.data).exists()
        return "" if there else self.section.data

    def options(self, out: Path | str, data_dir: Path | None) -> list[str]:
        """Lists the arguments of the example, including folders."""
        data: list[str] = []
        if data_dir and self.section.data:
            data = [self.section.data_option, str(data_dir / self.section.data)]
        return ["--out", str(out), *self.arguments, *data]


def _read() -> Iterator[Section]:
    path = Path(__file__).with_suffix(".toml")
    found = tomllib.loads(path.read_text("utf-8"))
    examples = found["examples"]
    for own in [*found["sections"], *_of_papers(examples)]:
        section = {**examples[own["example"]], **own}
        if "data_sets" in own:
            section["models"] = {
                f"{model} {name}": f"--name {name}"
                for name in own["data_sets"]
                for model in own["side_by_side"]
            }
        for name in ("paper", "lengths"):
            section.pop(name, None)
        yield Section(**section)


def _of_papers(examples: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """Describes a section for each task and length, with each preset as its paper."""
    sections: dict[str, dict[str, Any]] = {}
    for row in PRESETS:
        example, units = row.task.replace("-", "_"), units_text(row.units)
        name = f"{row.model} {units.replace('/', '-')}"
        paper = examples[example].get("paper")
        for length in examples[example].get("lengths", [0]) if paper else ():
            if row.lengths and length not in row.lengths:
                continue
            title = paper + (f", T = {length}" if length else "")
            title += f", {name}" if example == "timit" else ""
            section = sections.setdefault(title, {"models": {}, "set": "full"})
            section["title"] = f"{title}, as long as the papers"
            section["example"] = example
            section["arguments"] = "--preset paper"
            section["arguments"] += f" --length {length}" if length else ""
            if example == "timit":
                section["arguments"] += f" --models {row.model} --units {units}"
            else:
                # XLA makes the LSTM slower over long sequences.
                xla = " --jit-compile" if row.model != "lstm" else ""
                section["models"][name] = f"--units {units}{xla}"
    return sections.values()


SECTIONS = tuple(_read())


def select(chosen: str, prefixes: Sequence[str] | None = None) -> list[Run]:
    """Lists the runs of a set."""
    held = SETS[: SETS.index(chosen) + 1]
    runs = [
        run for section in SECTIONS if section.set in held for run in section.runs()
    ]
    if prefixes is not None:
        runs = [run for run in runs if run.name.startswith(tuple(prefixes))]
        if not runs:
            raise ValueError(
                f"`prefixes` (--only) must begin the name of a run of {chosen!r}. "
                f"Received: {list(prefixes)}"
            )
    return runs
