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
# Where TensorFlow, XLA on JAX, and BLAS take the number of their threads from.
THREADS = ("TF_NUM_INTRAOP_THREADS", "NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# Without these a program elsewhere would be another one.
_HANDED_ON = ("KERAS_BACKEND", "PYTHONPATH")
_SECONDS = 0.5
_given_up: ContextVar[Callable[[], bool]] = ContextVar(
    "given_up", default=task_is_cancelled
)


class ProgramFailedError(Exception):
    """A program that ended with an error, or was ended."""


def _handed_on() -> dict[str, str]:
    return {name: os.environ[name] for name in _HANDED_ON if name in os.environ}


@dataclass(frozen=True)
class Program:
    """A program and what it needs, to be run by any process that sees the same files.

    Attributes:
        command: Program and arguments.
        folder: Its own folder, which exists. What it has to say goes to `log.txt`
            there.
        seen: A file that this process has made, by which another one knows that it
            sees the same files.
        resume: A file by which a program that was broken off is known, and what to add
            to the command then. Default: `None`, nothing.
        threads: How many it is to have. Default: `None`, the cores of a task where it
            is run.
        cwd: Where it is run. Default: the folder of this process.
        environment: What is added to the environment there. Default: Keras's backend
            and Python's path, as they are here.
    """

    command: Sequence[str]
    folder: Path
    seen: Path
    resume: tuple[Path, str] | None = None
    threads: int | None = None
    cwd: Path = field(default_factory=Path.cwd)
    environment: Mapping[str, str] = field(default_factory=_handed_on)


def run_program(program: Program) -> None:
    """Runs a program, which ends when this process does, or the executor gives it up.

    Where one that was left behind is still at it, this waits for its end.

    Args:
        program: The program.

    Raises:
        FileNotFoundError: If the files that it needs are not there.
        ProgramFailedError: If it fails. The message has the end of the log.

    Example:
    >>> program = Program(["true"], Path.cwd(), seen=Path.cwd())
    >>> run_program(program)
    """
    check_shared(program.seen)
    threads = task_cores() if program.threads is None else program.threads
    own = dict.fromkeys(THREADS, str(threads))
    # The program holds the lock, too: it may outlive this process by a moment.
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
    """Runs a command that ends when this process does; gives its status.

    Args:
        command: Program and arguments.
        **own: What `subprocess.Popen` takes besides.

    Raises:
        ProgramFailedError: If the executor that has this thread gives it up.

    Example:
    >>> wait_for(["true"])
    0
    """
    # A `preexec_fn` may hang where there are threads.
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
    """The threads of each of several programs that share this process's cores.

    Example:
    >>> share(10_000)
    1
    """
    return max(1, len(os.sched_getaffinity(0)) // tasks)


@contextlib.contextmanager
def program_pool(workers: int) -> Iterator[Executor]:
    """Threads that wait for programs; see `keras_ortho.executors.open_executor`.

    Args:
        workers: Number of programs at once.

    Yields:
        The executor. An error, or an interrupt from the keyboard, ends its programs.
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
