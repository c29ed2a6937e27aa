"""Entries of lists of recordings, common to all list formats."""

import os
from pathlib import Path
from typing import NamedTuple

from keras_ortho.files import read_bytes

LARGEST_LIST = 2**27  # bytes; a list of LibriSpeech has a sixth of it


class Entry(NamedTuple):
    """One recording in a list.

    Attributes:
        file: Path of the recording, as in the list.
        speaker: The speaker.
        split: The split, or `None` if the list has no splits.
        id: The id of the utterance, or `None` if the list has no ids.
        where: The list and the line number, for error messages.
    """

    file: str
    speaker: str
    split: str | None
    id: str | None
    where: str


def read_text(path: str | os.PathLike[str]) -> str:
    """Reads the text of a list."""
    data = read_bytes(Path(path), LARGEST_LIST)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"A list must be in UTF-8. Received: {os.fspath(path)}, line {line}: "
            f"the byte 0x{data[error.start]:02x}"
        ) from error
