"""Writes and reads of files that are whole or not there at all."""

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
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


def remove_asides(path: str | os.PathLike[str]) -> None:
    """Removes temporary files left by processes killed while `replacing` a file."""
    name = re.compile(rf"tmp-\d+-{re.escape(Path(path).name)}")
    for found in Path(os.path.realpath(path)).parent.iterdir():
        if name.fullmatch(found.name):
            found.unlink()


def write_json(
    path: str | os.PathLike[str], values: Mapping[str, Any], indent: int | None = 1
) -> None:
    """Writes values as JSON."""
    with replacing(path) as aside:
        aside.write_text(json.dumps(values, indent=indent) + "\n", "utf-8")


def read_json(
    path: str | os.PathLike[str], names: Iterable[str] = ()
) -> dict[str, Any]:
    """Reads a JSON object."""
    try:
        values = json.loads(Path(path).read_text("utf-8"))
    except (ValueError, RecursionError) as error:  # Invalid JSON or UTF-8.
        raise ValueError(f"{path} is damaged: {error}") from error
    missing = [name for name in names if name not in values]
    if missing or not isinstance(values, dict):
        raise ValueError(
            f"{path} is damaged: it must contain a JSON object with "
            f"{', '.join(missing)}. Received: {sorted(values)}"
        )
    return values


def file_sha256(path: str | os.PathLike[str]) -> str:
    """Returns the SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def json_sha256(value: Any) -> str:
    """Returns the SHA-256 of a value as JSON, in hexadecimal."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
