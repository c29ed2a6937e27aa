"""Files that appear whole or not at all, and that a power failure does not undo."""

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
    """Yields a path to write; at the end the file there replaces `path`.

    The file is on the disk before it has its name, and its name is when this ends.

    Args:
        path: The file to make. Until the end, and if an error ends the writing,
            it stays as it was. The yielded path is in the same folder and ends
            with the same name. A file that is there keeps its permissions, and of a
            link the file that it leads to is replaced.

    Example:

    >>> with replacing("results.txt") as aside:
    ...     aside.write_text("whole")
    """
    place = Path(os.path.realpath(path))
    # Two processes that write the same file may be on two machines.
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
    """Has the disk keep what was written.

    Args:
        path: A file; or a folder, for the names of the files in it.

    Example:

    >>> flush(".")
    """
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    except OSError as error:
        # Of a folder, some file systems on a network know no such thing.
        if not (error.errno == errno.EINVAL and os.path.isdir(path)):
            raise
    finally:
        os.close(file)


def remove_asides(path: str | os.PathLike[str]) -> None:
    """Removes what killed processes have left that were `replacing` a file.

    Args:
        path: The file. Nobody may be writing it.

    Example:

    >>> remove_asides("results.txt")
    """
    name = re.compile(rf"tmp-\d+-{re.escape(Path(path).name)}")
    for found in Path(os.path.realpath(path)).parent.iterdir():
        if name.fullmatch(found.name):
            found.unlink()
