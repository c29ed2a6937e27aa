"""Atomic, durable writes: files appear whole or not at all, and survive a power cut."""

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

# A list or object that contains no other. JSON strings contain no line breaks.
_INNERMOST = re.compile(r"([\[{])\n([^\[\]{}]*)\n\s*([\]}])")


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a path to write to; on exit, the file written there replaces `path`.

    The content is on disk before the file is renamed, and the new name is on disk when
    the context exits.
    """
    place = Path(os.path.realpath(path))
    # Not the process ID: two processes on different machines may write the same file.
    aside = place.with_name(f"tmp-{secrets.randbits(63)}-{Path(path).name}")
    try:
        yield aside
        flush(aside)
        if place.exists():
            shutil.copymode(place, aside)
        os.replace(aside, place)
        flush(place.parent)
    finally:
        aside.unlink(missing_ok=True)


def flush(path: str | os.PathLike[str]) -> None:
    """Flushes written data to disk."""
    is_folder = os.path.isdir(path)
    if is_folder and not hasattr(os, "O_DIRECTORY"):
        return
    # Windows flushes only what is open for writing, other systems open no folder so.
    file = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)
    try:
        os.fsync(file)
    except OSError as error:
        # Some network file systems do not support this for folders.
        if not (error.errno == errno.EINVAL and is_folder):
            raise
    finally:
        os.close(file)


def remove_asides(path: str | os.PathLike[str]) -> None:
    """Removes temporary files left by processes killed while `replacing` a file."""
    name = re.compile(rf"tmp-\d+-{re.escape(Path(path).name)}")
    for found in Path(os.path.realpath(path)).parent.iterdir():
        if name.fullmatch(found.name):
            found.unlink()


def write_json(
    path: str | os.PathLike[str], values: Mapping[str, Any], *, one_line: bool = False
) -> None:
    """Writes values as JSON, innermost lists and objects on one line each."""
    text = json.dumps(values, indent=None if one_line else 1)
    with replacing(path) as aside:
        aside.write_text(_INNERMOST.sub(_on_one_line, text) + "\n", "utf-8")


def _on_one_line(innermost: re.Match[str]) -> str:
    opening, values, closing = innermost.groups()
    return opening + " ".join(line.strip() for line in values.split("\n")) + closing


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
