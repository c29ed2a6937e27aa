"""Sections of the report: the runs behind a table and its figures."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Run:
    """A run of one of the examples.

    Attributes:
        name: Name of the run, used for its files.
        script: Name of the example, without `.py`.
        arguments: Arguments of the example, except folders.
        data: Subfolder of the folder of all data that holds the data that it needs;
            empty if it needs none.
        data_option: Option of the example that takes the folder of the data.
        products: The result files: the names that the example gives them, and their
            names among all results. The record, NAME.json, comes last.
        table: CSV file among the results that may hold the record, without curves, for
            runs that only a table needs. Empty: none.
    """

    name: str
    script: str
    arguments: list[str]
    data: str
    data_option: str
    products: Mapping[str, str]
    table: str = ""

    def has_data(self, data_dir: Path | None) -> bool:
        """Whether the data that it needs, if any, are in the folder of all data."""
        return not self.data or bool(data_dir and (data_dir / self.data).exists())

    def options(self, out: Path | str, data_dir: Path | None) -> list[str]:
        """Lists the arguments of the example, including folders."""
        options = ["--out", str(out), *self.arguments]
        if self.data and data_dir:
            options += [self.data_option, str(data_dir / self.data)]
        return options


@dataclass(frozen=True)
class Section:
    """Runs that share a table and a figure.

    Attributes:
        title: Heading.
        script: Name of the example, without `.py`.
        arguments: Arguments common to all its runs.
        models: Further arguments of each model, by its name; words after the name
            tell its rows apart.
        published: Results in the paper, by the same names.
        set: The smallest set that contains the section.
        data: As for `Run`.
        ylabel: Label of the figure's y axis.
        log: Whether the y axis is logarithmic.
        picture: Whether there is a figure.
        across: Names of the figures that each have a table with the models side by
            side; the keys of `models` then name a model and a data set. Empty: one
            table, with a row for each model and all figures.
        apart: With `across`, data sets on which models cannot be compared. The means
            leave them out.
        seeds: Seeds of each run. The table shows the mean and the standard deviation
            of their figures.
        more_seeds: Additional seeds of the runs on the named data sets.
    """

    title: str
    script: str
    arguments: str
    models: Mapping[str, str]
    published: Mapping[str, str] = field(default_factory=dict)
    set: str = "standard"
    data: str = ""
    ylabel: str = "validation loss"
    log: bool = True
    picture: bool = True
    across: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    more_seeds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the section, used for its files."""
        return _name(self.title)

    @property
    def table(self) -> str:
        """Name of the file with all its records, for sections of many runs."""
        return f"{self.name}.csv" if self.across else ""

    def seeds_of(self, row: str) -> tuple[int, ...]:
        """Lists the seeds of a key of `models`."""
        return (*self.seeds, *self.more_seeds.get(row.partition(" ")[2], ()))

    def record(self, row: str, seed: int) -> str:
        """Returns the name of the run of a key of `models` with a seed."""
        words = [self.name, *row.lower().split()]
        return "-".join(words + [f"seed-{seed}"] * (len(self.seeds) > 1))

    def runs(self) -> list[Run]:
        """Lists its runs, model by model."""
        return [
            Run(
                self.record(row, seed),
                self.script,
                shlex.split(
                    f"--model {row.split()[0]} {self.arguments} {more} --seed {seed}"
                ),
                self.data,
                "--data-dir",
                {"run.json": f"{self.record(row, seed)}.json"},
                self.table,
            )
            for row, more in self.models.items()
            for seed in self.seeds_of(row)
        ]


@dataclass(frozen=True)
class Comparison:
    """A run of an example that makes a comparison with its own table and figures.

    Attributes:
        title: Heading.
        script: Name of the example, without `.py`.
        arguments: Arguments of the example.
        pictures: Figures that it writes.
        table: Table that it writes; empty if it writes none.
        record_file: Record that it writes.
        others: Other result files that it writes.
        set: The smallest set that contains the section.
        data: As for `Run`.
        data_option: As for `Run`.
    """

    title: str
    script: str
    arguments: str
    pictures: tuple[str, ...]
    table: str = "table.md"
    record_file: str = "run.json"
    others: tuple[str, ...] = ()
    set: str = "standard"
    data: str = ""
    data_option: str = "--data-dir"

    @property
    def name(self) -> str:
        """Name of the section, used for its files."""
        return _name(self.title)

    def runs(self) -> list[Run]:
        """Lists its only run."""
        files = [*self.pictures, *([self.table] if self.table else []), *self.others]
        products = {file: f"{self.name}-{file}" for file in files}
        products[self.record_file] = f"{self.name}.json"
        arguments = shlex.split(self.arguments)
        return [
            Run(
                self.name,
                self.script,
                arguments,
                self.data,
                self.data_option,
                products,
            )
        ]


def _name(title: str) -> str:
    return "-".join(title.lower().replace(",", "").replace("=", "").split())
