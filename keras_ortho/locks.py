"""A lock on a folder, held by one process at a time and released if it is killed."""

import contextlib
import errno
import fcntl
import json
import os
import platform
import time
import warnings
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

LOCK = ".lock"
# Errors of file systems without locks, such as some network file systems.
NO_LOCKS = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK}


@contextlib.contextmanager
def locked(
    folder: str | os.PathLike[str], name: str = LOCK, *, wait: bool = False
) -> Iterator[int]:
    """Locks a folder for this process, until the context or the process ends.

    Args:
        folder: The folder, which is created if it does not exist.
        name: Name of the lock, a file in the folder that is removed at the end. Locks
            with different names protect different parts of a folder. Default:
            `".lock"`.
        wait: Whether to wait if another process holds the lock. Default: `False`.

    Yields:
        The file descriptor of the lock. A process that inherits the descriptor also
        holds the lock until it ends.

    Raises:
        BlockingIOError: If another process holds the lock and `wait` is false. The
            message says which process, on which host, and since when.

    Example:

    >>> with locked("run"):
    ...     _ = Path("run", "result.txt").write_text("mine alone")
    """
    path = Path(folder) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    file = _hold(path, wait)
    try:
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps(_myself()).encode(), 0)
        yield file
    finally:
        # While the lock is held, so that no other process's lock is removed.
        path.unlink(missing_ok=True)
        os.close(file)


def _hold(path: Path, wait: bool) -> int:
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(file, path, wait)
            # The previous holder may have removed the opened file, or be about to.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), path.stat()):
                    return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _lock(file: int, path: Path, wait: bool) -> None:
    holder = None
    # A process that has only now acquired the lock may not have written its details.
    for _ in range(20):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            return
        except BlockingIOError:
            holder = _read(os.pread(file, 1_000, 0))
            if holder:
                break
            time.sleep(0.05)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            warnings.warn(
                f"The file system of {path} does not support locks: a second process "
                "is not kept out of the folder.",
                stacklevel=4,
            )
            return
    raise BlockingIOError(
        "Another process is using this folder: "
        + (
            "process {pid} on {host}, since {since}".format(**holder)
            if holder
            else f"one that has not written to {path} who it is"
        )
        + f". Received: {path.parent}"
    )


def _myself() -> dict[str, Any]:
    now = datetime.now().astimezone()
    host, since = platform.node(), now.isoformat(" ", "seconds")
    return {"pid": os.getpid(), "host": host, "since": since}


def _read(text: bytes) -> dict[str, Any] | None:
    """Parses the holder of a lock; `None` if it is not written, or no longer runs."""
    try:
        holder = json.loads(text)
        if holder["host"] == platform.node():
            os.kill(holder["pid"], 0)
    except PermissionError:  # The process runs, but belongs to another user.
        return holder
    # The text is missing or invalid, or the process has ended.
    except (KeyError, TypeError, ValueError, ProcessLookupError):
        return None
    return holder
