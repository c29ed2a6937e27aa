"""Files that appear whole or not at all."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a path to write; at the end the file there replaces `path`.

    Args:
        path: The file to make. Until the end, and if an error ends the writing,
            it stays as it was. The yielded path is in the same folder and ends
            with the same name.

    Example:

    >>> with replacing("results.txt") as aside:
    ...     aside.write_text("whole")
    """
    path = Path(path)
    aside = path.with_name(f"tmp-{os.getpid()}-{path.name}")
    try:
        yield aside
        with aside.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)
