"""Python programs that end with the process that waits for them."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keras_ortho.executors.parallel import check_shared
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


@dataclass(frozen=True)
class Program:
    """A program that any process with access to the same files can run."""

    # A script, or `-m` and a module, and its arguments.
    arguments: Sequence[str]
    # The program's own folder. Its output is appended to `log.txt` there.
    folder: Path
    # A file by which another process sees that it has access to the same files.
    seen: Path
    # A file that exists if the program was interrupted, and the argument for that case.
    resume: tuple[Path, str] | None = None
    # `None`: the number of cores per task where the program runs.
    threads: int | None = None
    cwd: Path = field(default_factory=Path.cwd)
    environment: Mapping[str, str] = field(
        default_factory=lambda: {n: v for n, v in os.environ.items() if n in _HANDED_ON}
    )


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
        log_text = (program.folder / LOG).read_text("utf-8", "replace").strip()
        last = log_text.rpartition("\n")[2]
        raise ProgramFailedError(f"it ended with status {status}: {last}")


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


def _worker() -> Any:
    """Returns the Dask worker of the task that runs this code, or `None`."""
    distributed = sys.modules.get("distributed")
    with contextlib.suppress(ValueError):
        return distributed and distributed.get_worker()
    return None


def task_is_cancelled() -> bool:
    """Returns whether this code runs in a cluster task that was canceled.

    Dask does not interrupt a task that is running. A task also counts as canceled if
    its client was killed.
    """
    worker = _worker()
    if worker is None:
        return False
    task = worker.state.tasks.get(worker.get_current_task())
    return task is None or task.state == "cancelled"


def task_cores() -> int:
    """Returns the number of cores per task when a worker runs as many as it can."""
    worker = _worker()
    if worker is None:
        return processor_count()
    # Respects the CPU limit of a container, which the affinity does not show.
    from dask.system import CPU_COUNT

    return max(1, CPU_COUNT // worker.state.nthreads)
