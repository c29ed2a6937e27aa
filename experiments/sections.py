"""Sections of the report: the runs behind a table and its figures."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Run:
    """A run of one of the examples.

    Attributes:
        name: Its name, for its files.
        script: The example, without `.py`.
        arguments: The arguments of the example, but for folders.
        data: Folder of the data that it needs, below the one of all data; empty for
            none.
        data_option: The option that takes it.
        products: The files that are its results, by what the example calls them, and
            what they are called among all results; the record, NAME.json, comes last.
        brief: Whether the record among the results is without curves, in one line: of
            runs that only a table needs.
    """

    name: str
    script: str
    arguments: list[str]
    data: str
    data_option: str
    products: Mapping[str, str]
    brief: bool = False

    def has_data(self, data_dir: Path | None) -> bool:
        """Whether there is the data that it needs, in the folder of all data."""
        return not self.data or bool(data_dir and (data_dir / self.data).exists())

    def options(self, out: Path | str, data_dir: Path | None) -> list[str]:
        """Lists the arguments of the example, with those for folders.

        Args:
            out: Folder for what the example writes.
            data_dir: Folder of all data; `None` for the example's own.

        Returns:
            The arguments.
        """
        options = ["--out", str(out), *self.arguments]
        if self.data and data_dir:
            options += [self.data_option, str(data_dir / self.data)]
        return options


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
        set: The smallest set that the section belongs to.
        data: As for `Run`.
        ylabel: Label of the figure.
        log: Whether its axis is logarithmic.
        picture: Whether there is a figure.
        across: The figures of which each has a table of all models side by side, where
            the rows are a model and what it is run on. Empty: one table with a row
            for each model and all figures.
        apart: With `across`, what no model can be compared on, which the means leave
            out.
        early: An epoch whose test figure stands beside the last one's. 0: none.
        seeds: The seeds of each run, whose figures the table gives the mean and the
            standard deviation of.
        more_seeds: Seeds besides, of the runs on what is named.
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
    early: int = 0
    seeds: tuple[int, ...] = (0,)
    more_seeds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Names the section, for its files."""
        return _name(self.title)

    def seeds_of(self, row: str) -> tuple[int, ...]:
        """Lists the seeds of a key of `models`."""
        return (*self.seeds, *self.more_seeds.get(row.partition(" ")[2], ()))

    def record(self, row: str, seed: int) -> str:
        """Names the run of a key of `models` from a seed."""
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
                bool(self.across),
            )
            for row, more in self.models.items()
            for seed in self.seeds_of(row)
        ]


@dataclass(frozen=True)
class Comparison:
    """A run of an example that compares, tabulates and draws by itself.

    Attributes:
        title: Heading.
        script: The example, without `.py`.
        arguments: Its arguments.
        pictures: The figures that it writes.
        table: The table that it writes, if it does.
        record_file: Its record.
        others: Other files that belong to its results.
        set: The smallest set that the section belongs to.
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
        """Names the section, for its files."""
        return _name(self.title)

    def runs(self) -> list[Run]:
        """Lists its run, the only one."""
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
