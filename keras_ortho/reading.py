"""Reading files: errors that name the file, and bounds on their sizes."""

import contextlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns what a reader raises for a damaged file into a `ValueError` that names it.

    Errors of the operating system, which name it themselves, stay as they are.
    """
    try:
        yield
    except Exception as error:  # Damage makes libraries raise many types.
        if isinstance(error, FileNotFoundError) or getattr(error, "errno", None):
            raise
        raise ValueError(
            "The file is damaged, or has another format. "
            f"Received: {os.fspath(path)}: {type(error).__name__}: {error}"
        ) from error


def read_bytes(path: str | os.PathLike[str], largest: int) -> bytes:
    """Reads a whole file of at most `largest` bytes."""
    status = os.stat(path)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(
            f"The path must be that of a file. Received: {os.fspath(path)}"
        )
    if not stat.S_ISREG(status.st_mode):  # Opening a pipe would wait for its other end.
        raise ValueError(
            f"The path must be that of a regular file. Received: {os.fspath(path)}"
        )
    if status.st_size > largest:
        raise ValueError(
            f"The file must have at most {largest} bytes. Received: {os.fspath(path)} "
            f"of {status.st_size} bytes"
        )
    return Path(path).read_bytes()


def read_json(path: str | os.PathLike[str], largest: int) -> Any:
    """Reads a JSON file of at most `largest` bytes."""
    with naming(path):
        return json.loads(read_bytes(path, largest))
