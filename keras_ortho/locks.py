"""A lock on a folder, held by one process at a time and released if it is killed."""

import contextlib
import errno
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import filelock

LOCK = ".lock"
# Errors of file systems without locks, such as some network file systems.
NO_LOCKS = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK}


@contextlib.contextmanager
def locked(
    folder: str | os.PathLike[str], name: str = LOCK, *, wait: bool = False
) -> Iterator[None]:
    """Locks a folder for this process, until the context or the process ends."""
    path = Path(folder) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=-1 if wait else 0)
    except filelock.Timeout as error:
        raise BlockingIOError(
            "Another process is using this folder: it holds the lock "
            f"{name}. Received: {path.parent}"
        ) from error
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        warnings.warn(
            f"The file system of {path} does not support locks: a second process "
            "is not kept out of the folder.",
            stacklevel=3,
        )
    try:
        yield
    finally:
        lock.release()
