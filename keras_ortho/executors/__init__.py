"""Where work is done: in processes of this machine, or on a Dask cluster."""

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
    """Opens an executor; what is left when an error ends it is given up.

    Args:
        workers: How much of the work is done at once on this machine. On a cluster its
            workers say that.
        scheduler: Address of the scheduler of a Dask cluster, such as
            `"tcp://host:8786"`. Its workers need the same packages as this process.
            Work whose worker is lost is done again by another one, as often as the
            cluster's `allowed-failures` has it. Default: `None`, this machine.
        programs: Whether the work is no more than to wait for programs, by
            `keras_ortho.executors.programs.run_program`: on this machine threads do
            that. Default: `False`, it is done in processes, and has to be picklable.

    Yields:
        The executor.

    Raises:
        BrokenExecutor: If a worker died, of a cluster too many.
        ImportError: If `scheduler` is given and distributed is not installed.
        ValueError: If `workers` is not positive, or no scheduler answers at the
            address.

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
