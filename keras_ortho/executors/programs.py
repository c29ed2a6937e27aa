"""Python programs that end with the process that waits for them."""

import contextlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keras_ortho.executors.parallel import check_shared
from keras_ortho.extras import require
from keras_ortho.processors import processor_count

LOG = "log.txt"
# Variables that set the number of threads of TensorFlow, XLA on JAX, and BLAS.
THREADS = ("TF_NUM_INTRAOP_THREADS", "NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# Variables that a program on another machine needs in order to behave the same.
_HANDED_ON = ("KERAS_BACKEND", "PYTHONPATH")
_CHILD = Path(__file__).with_name("child.py")
_SECONDS = 0.5


class ProgramFailedError(Exception):
    """Raised if a program fails or is terminated."""


def _handed_on() -> dict[str, str]:
    return {name: os.environ[name] for name in _HANDED_ON if name in os.environ}


@dataclass(frozen=True)
class Program:
    """A program that any process with access to the same files can run.

    Attributes:
        arguments: Those of Python: a script, or `-m` and a module, and its arguments.
        folder: The program's own folder, which must exist. Its output is appended to
            `log.txt` there.
        seen: A file written by this process. Another process checks that it exists, to
            verify that it has access to the same files.
        resume: A pair: a file that exists if the program was interrupted, and an
            argument to append to the command in that case. Default: `None`, no
            argument.
        threads: Number of threads. Default: `None`, the number of cores per task where
            the program runs.
        cwd: Working directory. Default: that of this process.
        environment: Environment variables to add. Default: `KERAS_BACKEND` and
            `PYTHONPATH` as they are set in this process.
    """

    arguments: Sequence[str]
    folder: Path
    seen: Path
    resume: tuple[Path, str] | None = None
    threads: int | None = None
    cwd: Path = field(default_factory=Path.cwd)
    environment: Mapping[str, str] = field(default_factory=_handed_on)


def run_program(program: Program, given_up: Callable[[], bool] | None = None) -> None:
    """Runs a program, which ends if this process ends."""
    check_shared(program.seen)
    threads = task_cores() if program.threads is None else program.threads
    own = dict.fromkeys(THREADS, str(threads))
    arguments = list(program.arguments)
    if program.resume and program.resume[0].exists():
        arguments.append(program.resume[1])
    with open(program.folder / LOG, "ab") as log:
        status = wait_for(
            arguments,
            given_up or task_is_cancelled,
            cwd=program.cwd,
            env={**os.environ, **program.environment, **own},
            stdout=log,
            stderr=log,
        )
    if status:
        raise ProgramFailedError(
            f"it ended with status {status}: {_end(program.folder / LOG)}"
        )


def wait_for(
    arguments: Sequence[str], given_up: Callable[[], bool] = lambda: False, **own: Any
) -> int:
    """Runs Python in a process that ends with this one, and returns its exit status."""
    command = [sys.executable, str(_CHILD), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, **own) as process:
        try:
            while not given_up():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.wait(_SECONDS)
            raise ProgramFailedError("it was given up")
        finally:
            process.terminate()


def task_is_cancelled() -> bool:
    """Returns whether this code runs in a cluster task that was canceled.

    Dask does not interrupt a task that is running. A task also counts as canceled if
    its client was killed.
    """
    distributed = sys.modules.get("distributed")
    try:
        worker = distributed.get_worker() if distributed else None
    except ValueError:  # Not on a worker.
        return False
    if worker is None:
        return False
    task = worker.state.tasks.get(worker.get_current_task())
    return task is None or task.state == "cancelled"


def task_cores() -> int:
    """Returns the number of cores per task when a worker runs as many as it can."""
    if importlib.util.find_spec("distributed") is None:  # So this is no worker.
        return processor_count()
    # Respects the CPU limit of a container, which the affinity does not show.
    cores = require("dask.system", extra="cluster").CPU_COUNT
    try:
        at_once = require("distributed", extra="cluster").get_worker().state.nthreads
    except ValueError:  # Not on a worker.
        at_once = 1
    return max(1, cores // at_once)


def _end(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"{log} is empty"
