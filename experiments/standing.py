"""Which runs of a set are done, and which are left."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.records import brief, read_record, read_run
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

    def record(self, run: Run) -> dict[str, Any] | None:
        """Reads the record of a run; `None` if there is none."""
        return read_run(self.results, run.name, run.table)

    def trained_here(self, run: Run) -> bool:
        """Whether the record of a run is the one in its work folder."""
        own = self.work / run.name / list(run.products)[-1]
        if not own.exists():
            return False
        made = read_record(own)
        return (brief(made) if run.table else made) == self.record(run)

    def is_done(self, run: Run, fresh: bool = False) -> bool:
        """Whether a run is done; with `fresh`, only if it was trained here."""
        if self.record(run) is None:
            return False
        return self.trained_here(run) if fresh else True

    def committed(self) -> set[str]:
        """Lists the files of records that git tracks; none without git."""
        command = ["git", "-C", str(self.results), "ls-files", "*.json", "*.csv"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return set()
        return set(done.stdout.splitlines())


def standing(runs: Sequence[Run], folders: Folders, fresh: bool = False) -> list[str]:
    """Describes the existing records of a set, and how many runs are left."""
    done = [run for run in runs if folders.is_done(run, fresh)]
    lines = []
    if done:
        here = sum(folders.trained_here(run) for run in done)
        tracked = folders.committed()
        committed = sum(bool({f"{r.name}.json", r.table} & tracked) for r in done)
        commits = sorted({str(r["commit"]) for r in map(folders.record, done) if r})
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
    left = sum(run not in done and run.has_data(folders.data) for run in runs)
    if left:
        lines.append("1 run remains." if left == 1 else f"{left} runs remain.")
    return lines


def listing(runs: Sequence[Run], folders: Folders, fresh: bool = False) -> list[str]:
    """Lists runs, each with its record, the data that it lacks, or as still to do."""
    lines = []
    for run in runs:
        record, text = folders.record(run), "to do"
        if record and folders.is_done(run, fresh):
            text = f"recorded at {record['commit']}"
        elif not run.has_data(folders.data):
            text = f"needs {run.data} in --data-dir"
        lines.append(f"{run.name}: {text}")
    return lines
