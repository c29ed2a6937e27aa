"""A lock on a folder: one process at a time, none after a kill."""

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
# Of file systems that have no locks, such as some on a network.
NO_LOCKS = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK}


@contextlib.contextmanager
def locked(
    folder: str | os.PathLike[str], name: str = LOCK, *, wait: bool = False
) -> Iterator[int]:
    """Holds a folder for one process; the lock ends with it, however it ends.

    Args:
        folder: The folder, which is made.
        name: Name of the lock, a file in the folder that is removed at the end: what
            has locks by several names is held bit by bit. Default: `".lock"`.
        wait: Whether to wait for another process that holds it. Default: `False`.

    Yields:
        The descriptor of the lock's file. A process that inherits it holds the lock,
        too, until it ends.

    Raises:
        BlockingIOError: If another process holds it and `wait` is false. The message
            says which, on which host, and since when.

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
        path.unlink(missing_ok=True)  # While it is held: nobody else's goes.
        os.close(file)


def _hold(path: Path, wait: bool) -> int:
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(file, path, wait)
            # The one before may have removed the file that was opened here, or do so
            # now.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), path.stat()):
                    return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _lock(file: int, path: Path, wait: bool) -> None:
    holder = None
    # One that has only just got the lock may have to be asked twice who it is.
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
                f"The file system of {path} has no locks: nothing keeps a second "
                "process out of the folder.",
                stacklevel=4,
            )
            return
    raise BlockingIOError(
        "Another process is at work in this folder: "
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
    """Who holds a lock; `None` if that is not written, or of one that was killed."""
    try:
        holder = json.loads(text)
        if holder["host"] == platform.node():
            os.kill(holder["pid"], 0)
    except PermissionError:  # It lives, and is another user's.
        return holder
    # No such text, or that of a process that has ended.
    except (KeyError, TypeError, ValueError, ProcessLookupError):
        return None
    return holder
