"""The workers of a Dask cluster as an executor."""

import contextlib
import os
import platform
import sys
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor
from pathlib import Path

from keras_ortho.extras import require

_TIMEOUT = "10s"  # For the scheduler to answer.


@contextlib.contextmanager
def cluster_pool(address: str) -> Iterator[Executor]:
    """The workers of a Dask cluster; see `keras_ortho.executors.open_executor`.

    Args:
        address: That of the scheduler.

    Yields:
        The executor.

    Raises:
        BrokenExecutor: If workers die of the work, or the scheduler is lost.
        ImportError: If distributed is not installed.
        ValueError: If no scheduler answers.
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
        # Not pure: what was once given up would be so for good.
        executor = client.get_executor(pure=False)
        try:
            yield executor
        except distributed.KilledWorker as error:
            raise BrokenExecutor(str(error)) from error
        except CancelledError as error:
            raise BrokenExecutor("The scheduler has ended.") from error
        finally:
            executor.shutdown(wait=False)  # Cancels what is left.


def _check_address(address: str) -> None:
    """Refuses an address that a client would wait for when it is let go."""
    distributed = require("distributed", extra="cluster")
    if address.startswith("inproc:"):  # That of a scheduler of this process.
        return
    distributed.comm.get_address_host_port(address)
    if address.startswith(("tls:", "wss:")):
        secured = distributed.Security().get_connection_args("client")
        if not secured["ssl_context"]:
            raise ValueError(
                "Dask's configuration names no certificates, distributed.comm.tls"
            )


def task_is_cancelled() -> bool:
    """Whether this is a task of a cluster for which nobody waits any more.

    Dask lets what has begun go on. Here it is also so when the client was killed.

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
    """The cores that a task on a worker has, as many tasks as it may have at once.

    Example:
    >>> task_cores() >= 1
    True
    """
    # With what a container may use, which is not to be seen in the affinity.
    cores = require("dask.system", extra="cluster").CPU_COUNT
    try:
        at_once = require("distributed", extra="cluster").get_worker().state.nthreads
    except ValueError:  # Not on a worker.
        at_once = 1
    return max(1, cores // at_once)


def check_shared(path: str | os.PathLike[str]) -> None:
    """Checks on a worker that a file of the process that has the work is there.

    Raises:
        FileNotFoundError: If it is not.

    Example:
    >>> check_shared(".")
    """
    if not Path(path).exists():
        raise FileNotFoundError(
            f"A worker on {platform.node()} does not see what the command has written: "
            "the folder must be on a file system that all share, under the same name. "
            f"Received: {path}"
        )
