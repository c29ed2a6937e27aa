"""Executors that run work on this machine or on a Dask cluster."""

import contextlib
from collections.abc import Iterator
from concurrent.futures import Executor

from keras_ortho.checks import check_count
from keras_ortho.executors.cluster import cluster_pool
from keras_ortho.executors.processes import worker_pool
from keras_ortho.executors.programs import program_pool


@contextlib.contextmanager
def open_executor(
    workers: int, scheduler: str | None = None, *, programs: bool = False
) -> Iterator[Executor]:
    """Opens an executor, and cancels the remaining work if an error occurs.

    Args:
        workers: Number of tasks to run at once on this machine, a positive integer. On
            a cluster, the number depends on its workers.
        scheduler: Address of the scheduler of a Dask cluster, such as
            `"tcp://host:8786"`. Its workers need the same packages as this process.
            If a worker is lost, its tasks are retried on others, as often as the
            cluster's `allowed-failures` permits. Default: `None`, this machine.
        programs: Whether the tasks only wait for programs, in
            `keras_ortho.executors.programs.run_program`. On this machine they then run
            in threads. Default: `False`, they run in processes and must be picklable.

    Yields:
        The executor.

    Raises:
        BrokenExecutor: If a worker died; on a cluster, if a task lost more workers than
            `allowed-failures` permits, or the scheduler was lost.
        ImportError: If `scheduler` is given and distributed is not installed.
        ValueError: If `workers` is not a positive integer, or no scheduler answers at
            the address.

    Example:
    >>> with open_executor(1, programs=True) as executor:
    ...     executor.submit(sum, [1, 2]).result()
    3
    """
    workers = check_count("workers", workers)
    if scheduler is not None:
        pool = cluster_pool(scheduler)
    else:
        pool = program_pool(workers) if programs else worker_pool(workers)
    with pool as executor:
        yield executor
