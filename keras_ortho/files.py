"""Atomic, durable writes: files appear whole or not at all, and survive a power cut."""

import contextlib
import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a path to write to; on exit, the file written there replaces `path`.

    The content is on disk before the file is renamed, and the new name is on disk when
    the context exits.

    Args:
        path: The file to write. It is unchanged until the context exits, and if an
            error occurs. The yielded path is in the same folder and ends with the same
            name. The permissions of an existing file are kept. If `path` is a symbolic
            link, its target is replaced.

    Example:

    >>> with replacing("results.txt") as aside:
    ...     aside.write_text("whole")
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
    """Flushes written data to disk.

    Args:
        path: A file, or a folder to flush the names of the files in it.

    Example:

    >>> flush(".")
    """
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    except OSError as error:
        # Some network file systems do not support this for folders.
        if not (error.errno == errno.EINVAL and os.path.isdir(path)):
            raise
    finally:
        os.close(file)


def remove_asides(path: str | os.PathLike[str]) -> None:
    """Removes temporary files left by processes killed while `replacing` a file.

    Args:
        path: The file. No process may be writing it.

    Example:

    >>> remove_asides("results.txt")
    """
    name = re.compile(rf"tmp-\d+-{re.escape(Path(path).name)}")
    for found in Path(os.path.realpath(path)).parent.iterdir():
        if name.fullmatch(found.name):
            found.unlink()
