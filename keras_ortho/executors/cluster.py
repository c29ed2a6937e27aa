"""Executors on the workers of a Dask cluster."""

import contextlib
import importlib.util
import os
import platform
import sys
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor
from pathlib import Path

from keras_ortho.extras import require

_TIMEOUT = "10s"  # Time limit for connecting to the scheduler.


@contextlib.contextmanager
def cluster_pool(address: str) -> Iterator[Executor]:
    """Opens an executor on a Dask cluster; see `keras_ortho.executors.open_executor`.

    Args:
        address: Address of the scheduler.

    Yields:
        The executor.

    Raises:
        BrokenExecutor: If a task kills too many workers, or the connection to the
            scheduler is lost.
        ImportError: If distributed is not installed.
        ValueError: If no scheduler answers at the address.
    """
    distributed = require("distributed", extra="cluster")
    try:
        _check_address(str(address))
        client = distributed.Client(address, timeout=_TIMEOUT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ValueError(
            "`scheduler` must be the address of a Dask scheduler that answers, such as "
            f"tcp://host:8786. {error}. Received: {address}"
        ) from error
    with client:
        # Not pure, or a task that was once canceled would stay so.
        executor = client.get_executor(pure=False)
        try:
            yield executor
        except distributed.KilledWorker as error:
            raise BrokenExecutor(str(error)) from error
        except CancelledError as error:
            raise BrokenExecutor("The scheduler has ended.") from error
        finally:
            executor.shutdown(wait=False)  # Cancels the remaining tasks.


def _check_address(address: str) -> None:
    """Rejects an address for which a client would hang when it is closed."""
    distributed = require("distributed", extra="cluster")
    if address.startswith("inproc:"):  # A scheduler in this process.
        return
    distributed.comm.get_address_host_port(address)
    if address.startswith(("tls:", "wss:")):
        secured = distributed.Security().get_connection_args("client")
        if not secured["ssl_context"]:
            raise ValueError(
                "Dask's configuration names no certificates, distributed.comm.tls"
            )


def task_is_cancelled() -> bool:
    """Returns whether this code runs in a cluster task that was canceled.

    Dask does not interrupt a task that is running. A task also counts as canceled if
    its client was killed.

    Example:
    >>> task_is_cancelled()
    False
    """
    distributed = sys.modules.get("distributed")
    try:
        worker = distributed.get_worker() if distributed else None
    except ValueError:  # Not on a worker.
        return False
    if worker is None:
        return False
    task = worker.state.tasks.get(worker.get_current_task())
    return task is None or task.state == "cancelled"


def task_cores() -> int:
    """Returns the number of cores per task when a worker runs as many as it can.

    Example:
    >>> task_cores() >= 1
    True
    """
    if importlib.util.find_spec("distributed") is None:  # So this is no worker.
        return len(os.sched_getaffinity(0))
    # Respects the CPU limit of a container, which the affinity does not show.
    cores = require("dask.system", extra="cluster").CPU_COUNT
    try:
        at_once = require("distributed", extra="cluster").get_worker().state.nthreads
    except ValueError:  # Not on a worker.
        at_once = 1
    return max(1, cores // at_once)


def check_shared(path: str | os.PathLike[str]) -> None:
    """Checks on a worker that a file written by the submitting process exists.

    Raises:
        FileNotFoundError: If the file does not exist.

    Example:
    >>> check_shared(".")
    """
    if not Path(path).exists():
        raise FileNotFoundError(
            f"A worker on {platform.node()} does not see what the command has written: "
            "the folder must be on a file system that all share, under the same name. "
            f"Received: {path}"
        )
