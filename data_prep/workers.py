"""Worker processes that end when the process that started them ends."""

import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import wait


def worker_pool(workers: int) -> ProcessPoolExecutor:
    """A pool of fresh processes, started when they are first needed.

    Args:
        workers: Number of processes.

    Returns:
        The pool. A killed parent takes its workers with it; an interrupt from the
        keyboard is left to the parent.
    """
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker)


def _start_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
    os._exit(1)
