"""Executes many runs at once, each in its own process, here or on a cluster."""

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from pathlib import Path

from experiments.programs import ProgramFailedError, resuming, run_program, wait_for
from keras_ortho.checks import check_count
from keras_ortho.executors import open_cluster
from keras_ortho.extras import require
from keras_ortho.files import replacing
from keras_ortho.locks import locked
from keras_ortho.processors import processor_count

PROGRESS, COMMAND_LOCK = "run/progress.txt", ".command.lock"
# Variables that set the number of threads of TensorFlow, XLA on JAX, and BLAS.
THREADS = ("TF_NUM_INTRAOP_THREADS", "NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_SECONDS = 0.5

# Runs a script with its arguments in the folder of its run.
RunScript = Callable[[Sequence[str], Path], None]


def run_all(
    function: Callable[[RunScript, str], None],
    folders: Mapping[str, Path],
    jobs: int | None = None,
    scheduler: str | None = None,
) -> Iterator[tuple[str, str | None]]:
    """Executes runs, several at once.

    An interrupted run is resumed, as is one whose worker is lost.
    """
    if jobs is not None:
        check_count("jobs", jobs)
    if not folders:
        return
    if scheduler is None and jobs in (None, 1):
        for name in folders:
            print(f"\n{name}", flush=True)
            yield name, _wrong(function, _run_here, name)
        return
    at_once = jobs or len(folders)
    # What a run needs in order to behave the same on another machine.
    handed_on = {"KERAS_BACKEND", "PYTHONPATH"} & {*os.environ}
    environment = {name: os.environ[name] for name in handed_on}
    if scheduler is None:
        own = str(max(1, processor_count() // at_once))
        environment |= dict.fromkeys(THREADS, own)
    over = threading.Event()
    with (
        ThreadPoolExecutor(at_once) as waiting,
        _executor(scheduler) as executor,
        _display(folders) as ended,
    ):
        run = functools.partial(_run_on, executor, environment, over.is_set)
        made = {waiting.submit(_wrong, function, run, name): name for name in folders}
        try:
            for future in as_completed(made):
                ended.add(made[future])
                yield made[future], future.result()
        finally:
            over.set()
            waiting.shutdown(wait=False, cancel_futures=True)


def _wrong(
    function: Callable[[RunScript, str], None], run: RunScript, name: str
) -> str | None:
    try:
        function(run, name)
    except (ProgramFailedError, OSError, ValueError) as error:
        return str(error)
    return None


def run_named(
    commands: Mapping[str, Sequence[str]],
    folders: Mapping[str, Path],
    run: RunScript,
    name: str,
) -> None:
    """Executes the run of a name with its script and arguments."""
    run(commands[name], folders[name])


def _run_here(arguments: Sequence[str], folder: Path) -> None:
    status = wait_for(resuming(arguments, folder))
    if status:
        raise ProgramFailedError(f"it ended with status {status}")


@contextlib.contextmanager
def _executor(scheduler: str | None) -> Iterator[Executor | None]:
    """Opens an executor on the cluster; without one, this process runs the programs."""
    if scheduler is None:
        yield None
        return
    with open_cluster(scheduler) as client:
        # Not pure, or a run that was once canceled would stay so.
        executor = client.get_executor(pure=False)
        try:
            yield executor
        finally:
            executor.shutdown(wait=False)  # Cancels what has not ended.


def _run_on(
    executor: Executor | None,
    environment: Mapping[str, str],
    given_up: Callable[[], bool],
    arguments: Sequence[str],
    folder: Path,
) -> None:
    folder = folder.absolute()
    given = arguments, folder, os.getcwd(), environment
    with locked(folder, COMMAND_LOCK):
        try:
            if executor is None:
                run_program(*given, given_up)
            else:
                executor.submit(run_program, *given).result()
        except ProgramFailedError:
            raise
        # No failure of a run on its worker may stop the others.
        except Exception as error:
            raise ProgramFailedError(f"{type(error).__name__}: {error}") from error


def write_progress(folder: Path, done: int, of: int) -> None:
    """Writes the progress of a run to its folder."""
    path = folder / PROGRESS
    path.parent.mkdir(exist_ok=True)
    # Windows does not replace a file that is being read.
    with contextlib.suppress(PermissionError), replacing(path) as aside:
        aside.write_text(str(done / of), "utf-8")


def read_progress(folder: Path) -> float:
    """Reads the progress of a run, from 0 to 1; 0 if it is unknown."""
    try:
        return float((folder / PROGRESS).read_text("utf-8"))
    except (FileNotFoundError, PermissionError):
        return 0.0


@contextlib.contextmanager
def _display(folders: Mapping[str, Path]) -> Iterator[set[str]]:
    """Shows the progress of all runs in a bar; the caller adds the ended to the set."""
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
            # In a log file, the elapsed time alone is not worth a line.
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
