"""JSON files with a checksum, which reveals whether they have been altered."""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from keras_ortho.files import replacing

SEAL = "sha256_of_the_rest"
# A list or object that contains no other. JSON strings contain no line breaks.
_INNERMOST = re.compile(r"([\[{])\n([^\[\]{}]*)\n\s*([\]}])")


def write_sealed(
    path: str | os.PathLike[str], values: Mapping[str, Any], *, one_line: bool = False
) -> None:
    """Writes values as JSON with a checksum.

    Lists and objects that contain no others are written on one line.

    Args:
        path: File to write.
        values: Dictionary of JSON-compatible values.
        one_line: Whether to write everything on one line. Default: `False`.

    Example:

    >>> write_sealed("figures.json", {"loss": 0.25})
    >>> read_sealed("figures.json")
    {'loss': 0.25}
    """
    with replacing(path) as aside:
        sealed = {**values, SEAL: json_sha256(json.loads(json.dumps(values)))}
        text = json.dumps(sealed, indent=None if one_line else 1)
        if not one_line:
            text = _INNERMOST.sub(_on_one_line, text)
        aside.write_text(text + "\n", "utf-8")


def read_sealed(
    path: str | os.PathLike[str], names: Iterable[str] = ()
) -> dict[str, Any]:
    """Reads values written by `write_sealed`.

    Args:
        path: A JSON file. If it has no checksum, since it was written in another way,
            none is checked.
        names: Names of required values, such as `"loss"`, or `"settings.seed"` for a
            nested value. Default: none.

    Returns:
        A dictionary of the values, without the checksum.

    Raises:
        ValueError: If the file is damaged, or lacks one of `names`. The message
            contains the path.
        FileNotFoundError: If the file does not exist.
    """
    try:
        values = json.loads(Path(path).read_text("utf-8"))
    except (ValueError, RecursionError) as error:  # Invalid JSON or UTF-8.
        raise ValueError(f"{path} is damaged: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(
            f"{path} is damaged: it must contain a JSON object. Received: "
            f"{type(values).__name__}"
        )
    seal = values.pop(SEAL, None)
    if seal is not None and seal != json_sha256(values):
        raise ValueError(f"{path} is damaged: its checksum does not match")
    missing = [name for name in names if not _holds(values, name.split("."))]
    if missing:
        raise ValueError(
            f"{path} is damaged: it must contain {', '.join(missing)}. Received: "
            f"{sorted(values)}"
        )
    return values


def is_sealed(path: str | os.PathLike[str], names: Iterable[str] = ()) -> bool:
    """Returns whether a file has the format of `write_sealed`.

    Args:
        path: A file, which need not exist.
        names: Names of required values. Default: none.

    Returns:
        Whether the file is a JSON object with these values and a checksum, which need
        not match.

    Example:

    >>> is_sealed("no-such-file.json")
    False
    """
    try:
        values = json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(values, dict) and {SEAL, *names} <= values.keys()


def _holds(values: Any, names: list[str]) -> bool:
    for name in names:
        if not isinstance(values, dict) or name not in values:
            return False
        values = values[name]
    return True


def file_sha256(path: str | os.PathLike[str]) -> str:
    """Computes the checksum of a file.

    Args:
        path: The file.

    Returns:
        The SHA-256 hash of its contents, in hexadecimal.
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _on_one_line(innermost: re.Match[str]) -> str:
    opening, values, closing = innermost.groups()
    return opening + " ".join(line.strip() for line in values.split("\n")) + closing


def json_sha256(value: Any) -> str:
    """Returns the SHA-256 of a value as JSON, in hexadecimal.

    Args:
        value: JSON-compatible value. The order of the names in a dictionary does not
            matter.

    Returns:
        64 hexadecimal digits.

    Example:

    >>> json_sha256({"a": 1, "b": 2}) == json_sha256({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
