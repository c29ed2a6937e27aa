"""Worker processes that end when the process that started them ends."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait


@contextlib.contextmanager
def worker_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of fresh processes, started when they are first needed.

    Args:
        workers: Number of processes.

    Yields:
        The pool. After an error, or an interrupt from the keyboard, which the workers
        leave to their parent, what has not begun is given up. A killed parent takes its
        workers with it.

    Raises:
        BrokenProcessPool: If a worker died.
    """
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=_start_worker)
    done = False
    try:
        yield pool
        done = True
    except Exception as error:
        _raise_if_broken(pool, error)
        raise
    finally:
        pool.shutdown(cancel_futures=not done)


def _raise_if_broken(pool: ProcessPoolExecutor, error: Exception) -> None:
    try:
        pool.submit(int)
    except BrokenProcessPool as broken:
        # The pool ends its other workers by itself, but for one that was being
        # started at that moment: for that one it would wait for ever. Starting it
        # may also have failed in some other way than by saying that it is broken.
        for process in multiprocessing.active_children():
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
