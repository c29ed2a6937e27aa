"""A lock on a folder, held by one process at a time and released if it is killed."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import filelock

LOCK = ".lock"


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
    try:
        yield
    finally:
        lock.release()
