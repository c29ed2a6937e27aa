"""Worker processes that end when the process that started them ends."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess


@contextlib.contextmanager
def worker_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Opens a pool of spawned processes, which start when they are first needed.

    An error or a keyboard interrupt cancels the tasks that have not started. The
    workers ignore keyboard interrupts, and exit if their parent is killed.

    Args:
        workers: Number of processes.

    Yields:
        The pool.

    Raises:
        BrokenProcessPool: If a worker died.
    """
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=_start_worker)
    processes = pool._processes  # The pool itself forgets them when it breaks.
    done = False
    try:
        yield pool
        done = True
    except Exception as error:
        _raise_if_broken(pool, processes, error)
        raise
    finally:
        pool.shutdown(cancel_futures=not done)


def _raise_if_broken(
    pool: ProcessPoolExecutor, processes: Mapping[int, BaseProcess], error: Exception
) -> None:
    try:
        pool.submit(int)
    except BrokenProcessPool as broken:
        # The pool ends its other workers itself, except one that was being started at
        # that moment, for which it would wait forever. Starting that worker may also
        # have raised an error other than `BrokenProcessPool`.
        for process in list(processes.values()):
            process.terminate()
        raise broken from error


def _start_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
    os._exit(1)
