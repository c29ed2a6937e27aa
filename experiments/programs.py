"""Python programs that end with the process that waits for them."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_ortho.executors import check_shared

LOG = "log.txt"
# A file that every started run has, and the option that resumes a run.
BEGUN, RESUME = "run/settings.json", "--resume"
# The lock of who waits for a run, by which a worker sees that it has the same files.
COMMAND_LOCK = ".command.lock"
_CHILD = Path(__file__).with_name("child.py")


class ProgramFailedError(Exception):
    """Raised if a program fails or is terminated."""


def run_program(
    arguments: Sequence[str],
    folder: Path,
    cwd: str,
    environment: Mapping[str, str],
    given_up: Callable[[], bool] = lambda: False,
) -> None:
    """Starts or resumes a run, whose output is appended to a file in its folder."""
    check_shared(folder / COMMAND_LOCK)
    with open(folder / LOG, "ab") as log:
        own = {"cwd": cwd, "env": {**os.environ, **environment}}
        status = wait_for(
            resuming(arguments, folder), given_up, **own, stdout=log, stderr=log
        )
    if status:
        last = (folder / LOG).read_text("utf-8", "replace").strip().split("\n")[-1]
        raise ProgramFailedError(f"it ended with status {status}: {last}")


def resuming(arguments: Sequence[str], folder: Path) -> list[str]:
    """Adds the option that resumes a run, if it was started before."""
    return [*arguments, *[RESUME] * (folder / BEGUN).exists()]


def wait_for(
    arguments: Sequence[str], given_up: Callable[[], bool] = lambda: False, **own: Any
) -> int:
    """Runs Python in a process that ends with this one, and returns its exit status."""
    command = [sys.executable, str(_CHILD), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, **own) as process:
        try:
            while not (given_up() or _is_cancelled()):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.wait(0.5)
            raise ProgramFailedError("it was given up")
        finally:
            process.terminate()


def _is_cancelled() -> bool:
    """Returns whether this is a Dask task that was canceled, which Dask only marks."""
    distributed = sys.modules.get("distributed")
    with contextlib.suppress(AttributeError, ValueError):  # This is no task.
        worker = distributed.get_worker()  # type: ignore[union-attr]
        task = worker.state.tasks.get(worker.get_current_task())
        return task is None or task.state == "cancelled"
    return False
