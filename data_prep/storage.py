"""JSON files, hashes, and the lock on a folder."""

import contextlib
import fcntl
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keras_ortho.files import replacing

LOCK = ".lock"


def write_json(path: Path, value: Any) -> None:
    """Writes a value as JSON, the same bytes for the same value."""
    with replacing(path) as aside:
        aside.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", "ascii")


def json_sha256(value: Any) -> str:
    """SHA-256 of a value's JSON, in hexadecimal; ValueError if it has none."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds a folder for one run; the lock ends with the process, however it ends.

    Args:
        folder: An existing folder. An empty file `.lock` stays behind in it.

    Raises:
        BlockingIOError: If another process holds it.
    """
    with (folder / LOCK).open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BlockingIOError(
                f"Another run is writing to this folder. Received: {folder}"
            ) from error
        yield
