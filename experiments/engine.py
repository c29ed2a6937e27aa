"""Runs in their own processes, many at once, here or on a cluster; how they end."""

import contextlib
import functools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_ortho.checks import check_count
from keras_ortho.executors import check_shared, open_cluster, processor_count
from keras_ortho.extras import require

LOG = "log.txt"
_CHILD = Path(__file__).with_name("child.py")
# Variables that set the number of threads of TensorFlow, XLA on JAX, and BLAS.
THREADS = ("TF_NUM_INTRAOP_THREADS", "NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")

# Runs a script with its arguments in the folder of its run.
RunScript = Callable[[Sequence[str], Path], None]


def run_program(
    arguments: Sequence[str], folder: Path, cwd: str, environment: Mapping[str, str]
) -> None:
    """Starts or resumes a run, whose output is appended to a file in its folder."""
    check_shared(folder)
    own = {"cwd": cwd, "env": {**os.environ, **environment}}
    with open(folder / LOG, "ab") as log:
        status = wait_for(resuming(arguments, folder), **own, stdout=log, stderr=log)
    if status:
        last = (folder / LOG).read_text("utf-8", "replace").strip().split("\n")[-1]
        raise ChildProcessError(f"it ended with status {status}: {last}")


def resuming(arguments: Sequence[str], folder: Path) -> list[str]:
    """Adds the option that resumes a run, if it was started before."""
    return [*arguments, *["--resume"] * (folder / "run" / "settings.json").exists()]


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Ends the command with a one-line message if its options or data are wrong."""
    try:
        yield
    except (ValueError, OSError, ImportError) as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        raise SystemExit(2) from error
    except KeyboardInterrupt as error:
        print(f"\n{Path(sys.argv[0]).name}: interrupted", file=sys.stderr)
        raise SystemExit(130) from error


def run_python(arguments: Sequence[str]) -> None:
    """Runs Python in a process that also ends if this one is killed."""
    if status := wait_for(arguments):
        raise SystemExit(status)


def wait_for(arguments: Sequence[str], **own: Any) -> int:
    """Runs Python in a process that ends with this one, and returns its exit status."""
    command = [sys.executable, str(_CHILD), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, **own) as process:
        try:
            while not _is_cancelled():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.wait(0.5)
            raise ChildProcessError("it was given up")
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


def run_all(
    function: Callable[[RunScript, str], None],
    folders: Mapping[str, Path],
    jobs: int | None = None,
    scheduler: str | None = None,
) -> Iterator[tuple[str, str | None]]:
    """Executes runs, several at once; those interrupted or lost are resumed.

    Yields the name of each run as it ends, and what went wrong, or `None`.
    """
    if jobs is not None:
        check_count("jobs", jobs)
    if not folders:
        return
    if scheduler is None and jobs in (None, 1):
        for name in folders:
            print(f"\n{name}", flush=True)
            yield _result(function, _run_here, name)
        return
    at_once = jobs or len(folders)
    # What a run needs in order to behave the same on another machine.
    handed_on = {"KERAS_BACKEND", "PYTHONPATH"} & {*os.environ}
    environment = {name: os.environ[name] for name in handed_on}
    if scheduler is None:
        share = max(1, processor_count() // at_once)
        environment |= dict.fromkeys(THREADS, str(share))
    tqdm = require("tqdm", extra="experiments").tqdm
    joblib = require("joblib", extra="experiments")
    with open_cluster(scheduler) if scheduler else contextlib.nullcontext() as client:
        run = functools.partial(_run_on, client, environment)
        # Threads, which end with this process, and with them the runs.
        parallel = joblib.Parallel(
            at_once, "threading", return_as="generator_unordered", batch_size=1
        )
        calls = [joblib.delayed(_result)(function, run, name) for name in folders]
        yield from tqdm(parallel(calls), total=len(calls), unit="run")


def _result(
    function: Callable[[RunScript, str], None], run: RunScript, name: str
) -> tuple[str, str | None]:
    try:
        function(run, name)
    # No failure of a run, or of its worker, may stop the others.
    except Exception as error:
        return name, str(error) or type(error).__name__
    return name, None


def _run_here(arguments: Sequence[str], folder: Path) -> None:
    if status := wait_for(resuming(arguments, folder)):
        raise ChildProcessError(f"it ended with status {status}")


def _run_on(
    client: Any, environment: Mapping[str, str], arguments: Sequence[str], folder: Path
) -> None:
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    given = arguments, folder, os.getcwd(), environment
    if client is None:
        run_program(*given)
    else:
        # Not pure, or a run that was once canceled would stay so.
        client.submit(run_program, *given, pure=False).result()
