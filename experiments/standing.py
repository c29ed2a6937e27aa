"""What is done of the runs of a set, and how long the rest will take."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments import forecast
from experiments.records import read_record
from experiments.sections import Run


@dataclass(frozen=True)
class Folders:
    """Where the files of runs are.

    Attributes:
        results: The records, and what else is a result.
        work: A folder for each run.
        data: A folder for each data set; `None` for none.
    """

    results: Path
    work: Path
    data: Path | None = None

    def record(self, run: Run) -> Path:
        """Names the record of a run."""
        return self.results / f"{run.name}.json"

    def has_data(self, run: Run) -> bool:
        """Whether there is the data that a run needs."""
        return not run.data or bool(self.data and (self.data / run.data).exists())

    def trained_here(self, run: Run) -> bool:
        """Whether the record of a run is the one that lies in its folder of work."""
        own = self.work / run.name / list(run.products)[-1]
        record = self.record(run)
        return (
            own.exists() and record.exists() and own.read_bytes() == record.read_bytes()
        )

    def is_done(self, run: Run, fresh: bool = False) -> bool:
        """Whether a run need not be done.

        Args:
            run: The run.
            fresh: Whether only what was trained here counts, not a record that came
                from elsewhere. Default: `False`.

        Raises:
            ValueError: If the record is damaged. The message names it.
        """
        if not self.record(run).exists():
            return False
        if fresh:
            return self.trained_here(run)
        read_record(self.record(run))
        return True

    def committed(self) -> set[str]:
        """The names of the records that git has; none where there is no git."""
        command = ["git", "-C", str(self.results), "ls-files", "*.json"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return set()
        return {Path(line).stem for line in done.stdout.splitlines()}


def standing(
    runs: Sequence[Run], folders: Folders, known: Sequence[Path], fresh: bool = False
) -> list[str]:
    """Says what there is of the records of a set, and how long the rest will take.

    Args:
        runs: The runs.
        folders: Where their files are.
        known: Folders of records to judge the time by.
        fresh: As for `Folders.is_done`.

    Returns:
        Lines of text.
    """
    done = [run for run in runs if folders.is_done(run, fresh)]
    lines = []
    if done:
        here = sum(folders.trained_here(run) for run in done)
        committed = len({run.name for run in done} & folders.committed())
        commits = sorted({str(read_record(folders.record(r))["commit"]) for r in done})
        lines.append(
            f"{len(done)} of {len(runs)} records are in {folders.results} and are not "
            f"made again: {committed} are committed to git, {here} were trained here, "
            f"in {folders.work}. They were made at {', '.join(commits)}."
        )
        lines.append(
            f"To train anew what was trained here, remove {folders.work}."
            if fresh
            else "--fresh trains them anew, --out FOLDER leaves these and has its own."
        )
    left = [run for run in runs if run not in done and folders.has_data(run)]
    if left:
        lines += _time(left, known)
    return lines


def listing(
    runs: Sequence[Run], folders: Folders, known: Sequence[Path], fresh: bool = False
) -> list[str]:
    """Lists the runs of a set, each with what there is of it or how long it takes.

    Args:
        runs: The runs.
        folders: Where their files are.
        known: As for `standing`.
        fresh: As for `Folders.is_done`.

    Returns:
        Lines of text.
    """
    costs = _costs(known)
    lines = []
    for run in runs:
        if folders.is_done(run, fresh):
            text = f"recorded at {read_record(folders.record(run))['commit']}"
        elif not folders.has_data(run):
            text = f"needs {run.data} in --data-dir; {_estimate(run, costs)}"
        else:
            text = _estimate(run, costs)
        lines.append(f"{run.name}: {text}")
    return lines


def _costs(known: Sequence[Path]) -> list[forecast.Cost]:
    paths = {p.name: p for folder in known for p in sorted(folder.glob("*.json"))}
    costs = [forecast.recorded(read_record(path)) for path in paths.values()]
    return [cost for cost in costs if cost]


def _seconds(run: Run, costs: Sequence[forecast.Cost]) -> float | None:
    cost = forecast.planned(run)
    return None if cost is None else forecast.seconds(cost, costs)


def _estimate(run: Run, costs: Sequence[forecast.Cost]) -> str:
    seconds = _seconds(run, costs)
    if seconds is None:
        return "no record is like it, of how long it takes"
    return f"about {forecast.duration(seconds)}"


def _time(runs: Sequence[Run], known: Sequence[Path]) -> list[str]:
    costs = _costs(known)
    seconds = [_seconds(run, costs) for run in runs]
    judged = [number for number in seconds if number is not None]
    lines = [f"{len(runs)} are to run."]
    if judged:
        lines[0] += (
            f" {len(judged)} of them take about {forecast.duration(sum(judged))} on a "
            "machine like that of the records, one after the other."
        )
    if len(judged) < len(runs):
        lines[0] += f" Of {len(runs) - len(judged)} no record says how long they take."
    factors = forecast.spread(costs)
    if judged and factors:
        half, most = factors
        lines.append(
            "That is rough: where the length of a sequence or the task is another, "
            f"half of the records are off by more than {half:.1f} times, one in ten "
            f"by more than {most:.1f}."
        )
    return lines
