"""Files that are whole or not there at all, and locks on folders."""

import contextlib
import csv
import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import filelock

from keras_ortho.checks import check

FilePath = str | os.PathLike[str]
LOCK = ".lock"
# Errors of file systems without locks, such as some network file systems.
NO_LOCKS = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK}


@contextlib.contextmanager
def replacing(path: FilePath) -> Iterator[Path]:
    """Yields a path to write to; on exit, the file written there replaces `path`."""
    place = Path(os.path.realpath(path))
    # Not the process ID: two processes on different machines may write the same file.
    aside = place.with_name(f"tmp-{secrets.randbits(63)}-{Path(path).name}")
    try:
        yield aside
        with open(aside, "rb+") as file:
            os.fsync(file.fileno())  # Else a power cut may leave the name, but no data.
        if place.exists():
            shutil.copymode(place, aside)
        os.replace(aside, place)
    finally:
        aside.unlink(missing_ok=True)


def write_json(path: FilePath, values: Mapping[str, Any]) -> None:
    """Writes values as JSON."""
    with replacing(path) as aside:
        aside.write_text(json.dumps(values, indent=1) + "\n", "utf-8")


def write_csv(path: FilePath, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes rows as a table of all their columns."""
    rows = list(rows)
    names = dict.fromkeys(name for row in rows for name in row)
    with (
        replacing(path) as aside,
        open(aside, "w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


@contextlib.contextmanager
def naming(path: FilePath) -> Iterator[None]:
    """Turns what readers raise for a damaged file into a `ValueError` that names it."""
    try:
        yield
    except Exception as error:  # Damage makes libraries raise many types.
        # The operating system's errors name it themselves.
        if isinstance(error, FileNotFoundError) or getattr(error, "errno", None):
            raise
        raise ValueError(
            "The file is damaged, or has another format. "
            f"Received: {os.fspath(path)}: {type(error).__name__}: {error}"
        ) from error


def read_bytes(path: FilePath, largest: int) -> bytes:
    """Reads a whole file of at most `largest` bytes."""
    status = os.stat(path)
    # Opening a pipe would wait for its other end.
    check(stat.S_ISREG(status.st_mode), "path", "be that of a regular file", path)
    received = f"{path} of {status.st_size} bytes"
    check(status.st_size <= largest, "path", f"have at most {largest} bytes", received)
    return Path(path).read_bytes()


def read_json(
    path: FilePath, names: Iterable[str] = (), *, largest: int = 2**30
) -> Any:
    """Reads a JSON file of at most `largest` bytes, which must have these names."""
    with naming(path):
        values = json.loads(read_bytes(path, largest))
        for name in names:
            values[name]
        return values


def file_sha256(path: FilePath) -> str:
    """Returns the SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def json_sha256(value: Any) -> str:
    """Returns the SHA-256 of a value as JSON, in hexadecimal."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


@contextlib.contextmanager
def locked(folder: FilePath, name: str = LOCK, *, wait: bool = False) -> Iterator[None]:
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
