"""What a list says of a recording, whatever form the list has."""

import os
from pathlib import Path
from typing import NamedTuple

from keras_ortho.reading import read_bytes

LARGEST_LIST = 2**27  # bytes; one of LibriSpeech has a sixth of it


class Entry(NamedTuple):
    """A line of a list.

    Attributes:
        file: The recording as the list has it.
        speaker: The speaker.
        split: The split, or None where the list has none.
        id: The utterance's id, or None where the list has none.
        where: The list and the line, for errors.
    """

    file: str
    speaker: str
    split: str | None
    id: str | None
    where: str


def read_text(path: str | os.PathLike[str]) -> str:
    """Reads a list's text.

    Args:
        path: A file in UTF-8, with or without a byte order mark.

    Returns:
        Its contents, line ends as they are.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is no regular file, too large, or not in UTF-8.
    """
    data = read_bytes(Path(path), LARGEST_LIST)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"A list must be in UTF-8. Received: {os.fspath(path)}, line {line}: "
            f"the byte 0x{data[error.start]:02x}"
        ) from error
