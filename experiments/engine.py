"""Many runs at once, each in a process of its own with its share of the cores."""

import contextlib
import ctypes
import functools
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_ortho.extras import require
from keras_ortho.files import replacing

LOG, PROGRESS = "log.txt", "run/progress.json"
# Where TensorFlow, XLA on JAX, and BLAS take the number of their threads from.
THREADS = ("TF_NUM_INTRAOP_THREADS", "NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_SECONDS = 0.5
# Loaded here, as little may be done between a fork and what follows it.
_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


class RunFailedError(Exception):
    """A run that ended with an error."""


def run_all(
    function: Callable[[str], str | None], folders: Mapping[str, Path], jobs: int
) -> Iterator[tuple[str, str | None]]:
    """Makes runs, several at once.

    Args:
        function: Makes the run of a name, by `run_command`. What it gives is handed
            on; an error that it raises is given as its text, and the others go on.
            Several processes have it, each a copy.
        folders: The folder of each run, by its name.
        jobs: How many at once. 1: in this process, where each run shows its own
            progress; else one display shows that of all.

    Yields:
        The name of each run that has ended and what is wrong with it, `None` if
        nothing is.

    Raises:
        ImportError: If joblib or tqdm is not installed, and `jobs` is above 1.
    """
    make = functools.partial(_without_error, function)
    if jobs == 1:
        yield from map(make, folders)
        return
    joblib = require("joblib", extra="experiments")
    with _display(folders) as ended:
        parallel = joblib.Parallel(
            n_jobs=jobs, return_as="generator_unordered", batch_size=1
        )
        for name, wrong in parallel(joblib.delayed(make)(name) for name in folders):
            ended.add(name)
            yield name, wrong


def _without_error(
    function: Callable[[str], str | None], name: str
) -> tuple[str, str | None]:
    try:
        return name, function(name)
    except (RunFailedError, OSError, ValueError) as error:
        return name, str(error)


def share(jobs: int) -> int:
    """The threads of each of several processes that share this one's cores.

    Example:
    >>> share(10_000)
    1
    """
    return max(1, len(os.sched_getaffinity(0)) // jobs)


def run_named(
    commands: Mapping[str, Sequence[str]],
    folders: Mapping[str, Path],
    jobs: int,
    name: str,
) -> None:
    """Runs the command of a name: see `run_command`."""
    run_command(commands[name], folders[name], jobs)


def run_command(command: Sequence[str], folder: Path, jobs: int = 1) -> None:
    """Runs a command, which ends when this process does.

    Args:
        command: Program and arguments.
        folder: The folder of its run.
        jobs: How many run at once. Of several, each has its share of the threads, and
            writes what it has to say to `log.txt` in its folder. Default: 1.

    Raises:
        RunFailedError: If it fails. The message has the end of the log.
    """
    if jobs == 1:
        _wait(command)
        return
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / LOG, "ab") as log:
        threads = dict.fromkeys(THREADS, str(share(jobs)))
        env = {**os.environ, **threads}
        _wait(command, folder, stdout=log, stderr=log, env=env)


def _wait(command: Sequence[str], folder: Path | None = None, **own: Any) -> None:
    # With a folder this is a worker, to end with its parent; else a command, which may
    # outlive the shell that it was started from.
    parent = os.getppid() if folder else None
    with subprocess.Popen(command, preexec_fn=_end_with_parent, **own) as process:
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_SECONDS)
                    break
                if parent not in (None, os.getppid()):
                    raise RunFailedError("the process that started the runs has ended")
        finally:
            process.terminate()
    if process.returncode:
        said = f": {_end(folder / LOG)}" if folder else ""
        raise RunFailedError(f"it ended with status {process.returncode}{said}")


def _end_with_parent() -> None:
    """Has Linux end this process with the one that starts it, however that ends."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _end(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"{log} is empty"


def write_progress(folder: Path, done: int, of: int) -> None:
    """Says in the folder of a run how far it has come."""
    path = folder / PROGRESS
    path.parent.mkdir(exist_ok=True)
    with replacing(path) as aside:
        aside.write_text(json.dumps({"done": done, "of": of}))


def read_progress(folder: Path) -> float:
    """How far a run has come, from 0 to 1; 0 where that is not known.

    Example:
    >>> write_progress(Path("."), 3, 12)
    >>> read_progress(Path("."))
    0.25
    """
    try:
        said = json.loads((folder / PROGRESS).read_text("utf-8"))
    except FileNotFoundError:
        return 0.0
    return said["done"] / said["of"]


@contextlib.contextmanager
def _display(folders: Mapping[str, Path]) -> Iterator[set[str]]:
    """Shows the progress of all runs in one bar; the names of the ended are added."""
    tqdm = require("tqdm", extra="experiments").tqdm
    ended: set[str] = set()
    over = threading.Event()
    bar = tqdm(
        total=len(folders),
        bar_format="{l_bar}{bar}| {n:.1f} of {total} runs [{elapsed}<{remaining}]"
        "{postfix}",
    )

    def show() -> None:
        while not over.wait(_SECONDS):
            parts = {name: read_progress(folder) for name, folder in folders.items()}
            parts |= dict.fromkeys(ended, 1.0)
            running = [f"{name} {p:.0%}" for name, p in parts.items() if 0 < p < 1]
            done, bar.n = bar.n, sum(parts.values())
            bar.set_postfix_str(", ".join(running), refresh=False)
            # A file need not hold how the time goes by.
            if bar.n != done or bar.fp.isatty():
                bar.refresh()

    watch = threading.Thread(target=show, daemon=True)
    watch.start()
    try:
        yield ended
    finally:
        over.set()
        watch.join()
        bar.n = float(len(ended))
        bar.set_postfix_str("", refresh=False)
        bar.close()
