"""Reads lists of recordings from Kaldi data folders: `wav.scp` and `utt2spk`.

For the format, see https://kaldi-asr.org/doc/data_prep.html.
"""

import os
from pathlib import Path

from .entries import Entry, read_text


def read_kaldi(folder: str | os.PathLike[str]) -> list[Entry]:
    """Reads a list of recordings from a Kaldi data folder."""
    folder = Path(folder)
    if (folder / "segments").exists():
        raise ValueError(
            "Utterances that are segments of recordings are not cut out: the folder "
            f"must have no file `segments`. Received: {folder / 'segments'}"
        )
    files = _read_table(folder / "wav.scp")
    speakers = _read_table(folder / "utt2spk")
    for name, (speaker, where) in speakers.items():
        if name not in files:
            raise ValueError(
                f"An utterance that {folder / 'wav.scp'} does not have. "
                f"Received: {where}: {name}"
            )
        if len(speaker.split()) > 1:
            raise ValueError(
                f"A speaker's name must have no blanks. Received: {where}: {speaker}"
            )
    entries = []
    for name, (file, where) in files.items():
        if name not in speakers:
            raise ValueError(
                f"An utterance that {folder / 'utt2spk'} does not have. "
                f"Received: {where}: {name}"
            )
        if file.endswith("|"):
            raise ValueError(
                "`wav.scp` must name files, not commands: write what the command "
                f"gives to a file, and name that. Received: {where}: {file}"
            )
        entries.append(Entry(file, speakers[name][0], None, name, where))
    return entries


def _read_table(path: Path) -> dict[str, tuple[str, str]]:
    """Maps the first word of each line to the rest of the line and its location."""
    table: dict[str, tuple[str, str]] = {}
    # Not `splitlines`, which also splits at characters that a name may contain.
    for number, line in enumerate(read_text(path).removesuffix("\n").split("\n"), 1):
        where = f"{path}, line {number}"
        key, *rest = line.split(maxsplit=1) or [""]
        if not rest:
            raise ValueError(
                "A line must have an utterance and what belongs to it. "
                f"Received: {where}: {line!r}"
            )
        if key in table:
            raise ValueError(f"An utterance twice. Received: {where}: {key}")
        table[key] = rest[0].strip(), where
    return table
