"""Programs that end with the process that waits for them."""

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keras_ortho.executors.cluster import (
    check_shared,
    task_cores,
    task_is_cancelled,
)
from keras_ortho.locks import locked

LOG = "log.txt"
# Variables that set the number of threads of TensorFlow, XLA on JAX, and BLAS.
THREADS = ("TF_NUM_INTRAOP_THREADS", "NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# Variables that a program on another machine needs in order to behave the same.
_HANDED_ON = ("KERAS_BACKEND", "PYTHONPATH")
_SECONDS = 0.5
_given_up: ContextVar[Callable[[], bool]] = ContextVar(
    "given_up", default=task_is_cancelled
)


class ProgramFailedError(Exception):
    """Raised if a program fails or is terminated."""


def _handed_on() -> dict[str, str]:
    return {name: os.environ[name] for name in _HANDED_ON if name in os.environ}


@dataclass(frozen=True)
class Program:
    """A program that any process with access to the same files can run.

    Attributes:
        command: Program and arguments.
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

    command: Sequence[str]
    folder: Path
    seen: Path
    resume: tuple[Path, str] | None = None
    threads: int | None = None
    cwd: Path = field(default_factory=Path.cwd)
    environment: Mapping[str, str] = field(default_factory=_handed_on)


def run_program(program: Program) -> None:
    """Runs a program, which ends if this process ends or the executor cancels it.

    If an earlier run of the program is still active in its folder, waits for its end.

    Args:
        program: The program.

    Raises:
        FileNotFoundError: If the file `program.seen` does not exist.
        ProgramFailedError: If the program fails or is canceled. If it fails, the
            message includes the last line of the log.

    Example:
    >>> program = Program(["true"], Path.cwd(), seen=Path.cwd())
    >>> run_program(program)
    """
    check_shared(program.seen)
    threads = task_cores() if program.threads is None else program.threads
    own = dict.fromkeys(THREADS, str(threads))
    # The program also holds the lock, as it may briefly outlive this process.
    with (
        locked(program.folder, ".program.lock", wait=True) as lock,
        open(program.folder / LOG, "ab") as log,
    ):
        command = list(program.command)
        if program.resume and program.resume[0].exists():
            command.append(program.resume[1])
        status = wait_for(
            command,
            cwd=program.cwd,
            env={**os.environ, **program.environment, **own},
            stdout=log,
            stderr=log,
            pass_fds=[lock],
        )
    if status:
        raise ProgramFailedError(
            f"it ended with status {status}: {_end(program.folder / LOG)}"
        )


def wait_for(command: Sequence[str], **own: Any) -> int:
    """Runs a command that ends if this process ends, and returns its exit status.

    Args:
        command: Program and arguments.
        **own: Further arguments of `subprocess.Popen`.

    Returns:
        The exit status.

    Raises:
        ProgramFailedError: If the executor that runs this thread or task cancels it.

    Example:
    >>> wait_for(["true"])
    0
    """
    # A `preexec_fn` may deadlock in the presence of threads.
    ending = ["setpriv", "--pdeathsig", "TERM", "--", *command]
    with subprocess.Popen(ending, **own) as process:
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.wait(_SECONDS)
                if _given_up.get()():
                    raise ProgramFailedError("it was given up")
        finally:
            process.terminate()


def share(tasks: int) -> int:
    """Returns the number of threads per program for `tasks` programs at once.

    The programs share the cores of this process.

    Example:
    >>> share(10_000)
    1
    """
    return max(1, len(os.sched_getaffinity(0)) // tasks)


@contextlib.contextmanager
def program_pool(workers: int) -> Iterator[Executor]:
    """Opens threads that wait for programs; see `keras_ortho.executors.open_executor`.

    Args:
        workers: Number of programs at once.

    Yields:
        The executor. An error or a keyboard interrupt ends its programs.
    """
    over = threading.Event()
    with ThreadPoolExecutor(
        workers, initializer=_given_up.set, initargs=(over.is_set,)
    ) as threads:
        try:
            yield threads
        except BaseException:
            over.set()
            threads.shutdown(wait=False, cancel_futures=True)
            raise


def _end(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"{log} is empty"
