"""JSON files that tell whether they are as they were written."""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from keras_ortho.files import replacing

SEAL = "sha256_of_the_rest"
# A list or an object that holds no other. No string of JSON holds an end of a line.
_INNERMOST = re.compile(r"([\[{])\n([^\[\]{}]*)\n\s*([\]}])")


def write_sealed(
    path: str | os.PathLike[str], values: Mapping[str, Any], *, one_line: bool = False
) -> None:
    """Writes values as JSON with a checksum.

    A list or an object that holds no other takes one line.

    Args:
        path: File to write.
        values: What it holds.
        one_line: Whether all of it takes one line. Default: `False`.

    Example:

    >>> write_sealed("figures.json", {"loss": 0.25})
    >>> read_sealed("figures.json")
    {'loss': 0.25}
    """
    with replacing(path) as aside:
        sealed = {**values, SEAL: _seal(json.loads(json.dumps(values)))}
        text = json.dumps(sealed, indent=None if one_line else 1)
        if not one_line:
            text = _INNERMOST.sub(_on_one_line, text)
        aside.write_text(text + "\n", "utf-8")


def read_sealed(
    path: str | os.PathLike[str], names: Iterable[str] = ()
) -> dict[str, Any]:
    """Reads what `write_sealed` wrote.

    Args:
        path: A JSON file. If it has no checksum, as one that was written otherwise,
            none is compared.
        names: Values that it must hold, such as `"loss"`, or `"settings.seed"` for
            one within another. Default: none.

    Returns:
        The values by name.

    Raises:
        ValueError: If it is damaged, or lacks one of `names`. The message names it.
        FileNotFoundError: If there is none.
    """
    try:
        values = json.loads(Path(path).read_text("utf-8"))
    except (ValueError, RecursionError) as error:  # Of JSON or of UTF-8.
        raise ValueError(f"{path} is damaged: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(
            f"{path} is damaged: it must hold names and values. "
            f"Received: {type(values).__name__}"
        )
    seal = values.pop(SEAL, None)
    if seal is not None and seal != _seal(values):
        raise ValueError(
            f"{path} is damaged: what it holds is not what its checksum is of"
        )
    missing = [name for name in names if not _holds(values, name.split("."))]
    if missing:
        raise ValueError(
            f"{path} is damaged: it must hold {', '.join(missing)}. "
            f"Received: {sorted(values)}"
        )
    return values


def is_sealed(path: str | os.PathLike[str]) -> bool:
    """Tells whether a file is one of `write_sealed`, whole or not.

    Args:
        path: A file, which need not exist.

    Returns:
        Whether it holds names and values with a checksum.

    Example:

    >>> is_sealed("no-such-file.json")
    False
    """
    try:
        values = json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(values, dict) and SEAL in values


def _holds(values: Any, names: list[str]) -> bool:
    for name in names:
        if not isinstance(values, dict) or name not in values:
            return False
        values = values[name]
    return True


def file_sha256(path: str | os.PathLike[str]) -> str:
    """Makes the checksum of a file.

    Args:
        path: The file.

    Returns:
        Its SHA-256, in hexadecimal.
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _on_one_line(innermost: re.Match[str]) -> str:
    opening, values, closing = innermost.groups()
    return opening + " ".join(line.strip() for line in values.split("\n")) + closing


def _seal(values: Mapping[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
