"""Which runs of a set are done, and how long the rest will take."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.forecast import Cost, duration, planned, recorded, seconds, spread
from experiments.records import brief, read_record
from experiments.sections import Run


@dataclass(frozen=True)
class Folders:
    """The folders of the files of runs.

    Attributes:
        results: Folder of the records and other results.
        work: Folder with a subfolder for each run.
        data: Folder with a subfolder for each data set; `None` if there is none.
    """

    results: Path
    work: Path
    data: Path | None = None

    def record(self, run: Run) -> Path:
        """Returns the path of the record of a run."""
        return self.results / f"{run.name}.json"

    def trained_here(self, run: Run) -> bool:
        """Whether the record of a run is the one in its work folder."""
        own = self.work / run.name / list(run.products)[-1]
        record = self.record(run)
        if not (own.exists() and record.exists()):
            return False
        if run.brief:
            return brief(read_record(own)) == read_record(record)
        return own.read_bytes() == record.read_bytes()

    def is_done(self, run: Run, fresh: bool = False) -> bool:
        """Whether a run is done; with `fresh`, only if it was trained here.

        Raises:
            ValueError: If the record is damaged. The message names the file.
        """
        if not self.record(run).exists():
            return False
        if fresh:
            return self.trained_here(run)
        read_record(self.record(run))
        return True

    def committed(self) -> set[str]:
        """Returns the names of the records that git tracks; none without git."""
        command = ["git", "-C", str(self.results), "ls-files", "*.json"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return set()
        return {Path(line).stem for line in done.stdout.splitlines()}


def standing(
    runs: Sequence[Run], folders: Folders, known: Sequence[Path], fresh: bool = False
) -> list[str]:
    """Describes the existing records of a set, and how long the rest will take.

    Args:
        runs: The runs.
        folders: The folders of their files.
        known: Folders of records from which to estimate times.
        fresh: As for `Folders.is_done`. Default: `False`.
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
            f"To retrain what was trained here, remove {folders.work}."
            if fresh
            else "--fresh trains them anew, --out FOLDER leaves these and has its own."
        )
    left = [run for run in runs if run not in done and run.has_data(folders.data)]
    if not left:
        return lines
    costs = _costs(known)
    times = [_seconds(run, costs) for run in left]
    judged = [time for time in times if time is not None]
    line = "1 run remains." if len(left) == 1 else f"{len(left)} runs remain."
    if judged:
        line += (
            f" {len(judged)} of them take about {duration(sum(judged))} on a "
            "machine like that of the records, one after the other."
        )
    if len(judged) < len(left):
        line += f" For {len(left) - len(judged)} no record shows how long they take."
    lines.append(line)
    factors = spread(costs)
    if judged and factors:
        half, most = factors
        lines.append(
            "That is rough: where the length of a sequence or the task is another, "
            f"half of the records are off by more than {half:.1f} times, one in ten "
            f"by more than {most:.1f}."
        )
    return lines


def listing(
    runs: Sequence[Run], folders: Folders, known: Sequence[Path], fresh: bool = False
) -> list[str]:
    """Lists runs, each with its record or its estimated time: see `standing`."""
    costs = _costs(known)
    lines = []
    for run in runs:
        time = _seconds(run, costs)
        text = (
            "no record is like it, of how long it takes"
            if time is None
            else f"about {duration(time)}"
        )
        if folders.is_done(run, fresh):
            text = f"recorded at {read_record(folders.record(run))['commit']}"
        elif not run.has_data(folders.data):
            text = f"needs {run.data} in --data-dir; {text}"
        lines.append(f"{run.name}: {text}")
    return lines


def _costs(known: Sequence[Path]) -> list[Cost]:
    paths = {p.name: p for folder in known for p in sorted(folder.glob("*.json"))}
    costs = [recorded(read_record(path)) for path in paths.values()]
    return [cost for cost in costs if cost]


def _seconds(run: Run, costs: Sequence[Cost]) -> float | None:
    cost = planned(run)
    return None if cost is None else seconds(cost, costs)
