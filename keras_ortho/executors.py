"""Work in processes of this machine, or on the workers of a Dask cluster."""

import contextlib
import os
import platform
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError
from pathlib import Path
from typing import Any

from keras_ortho.checks import check_count
from keras_ortho.extras import require


def processor_count() -> int:
    """Returns the number of processors that this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):  # Linux.
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_parallel(
    function: Callable[[Any], Any],
    items: Iterable[Any],
    workers: int,
    scheduler: str | None = None,
    *,
    batch_size: int | str = "auto",
) -> Iterator[Any]:
    """Yields the results of a function in the order of its arguments, as they come."""
    workers = check_count("workers", workers)
    if scheduler is not None:
        # Not by joblib's dask backend, which waits forever for a call without a result.
        with open_cluster(scheduler) as client:
            # Not pure, or a call that was once canceled would stay so.
            for future in client.map(function, list(items), pure=False):
                yield future.result()
        return
    joblib = require("joblib", extra="speech")
    calls = [joblib.delayed(function)(item) for item in items]
    # So many seconds without work end a process, also if its parent was killed.
    with joblib.parallel_config("loky", n_jobs=workers, idle_worker_timeout=30):
        parallel = joblib.Parallel(return_as="generator", batch_size=batch_size)
        yield from parallel(calls)


@contextlib.contextmanager
def open_cluster(address: str) -> Iterator[Any]:
    """Connects to a Dask cluster; what has not ended at the exit is canceled."""
    distributed = require("distributed", extra="cluster")
    try:
        # A client that could not begin keeps the process waiting when it is closed.
        distributed.comm.get_address_host_port(address)
        client = distributed.Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(
            "`scheduler` must be the address of a Dask scheduler that answers, such as "
            f"tcp://host:8786. {error}. Received: {address}"
        ) from error
    with client:
        try:
            yield client
        except (distributed.KilledWorker, CancelledError) as error:
            raise BrokenExecutor(f"The cluster has ended: {error}") from error


def check_shared(path: str | Path) -> None:
    """Refuses a worker that does not see a file of the submitting process."""
    if not Path(path).exists():
        raise FileNotFoundError(
            f"A worker on {platform.node()} does not see what the command has written: "
            "the folder must be on a file system that all share, under the same name. "
            f"Received: {path}"
        )
