"""Reads a corpus other than TIMIT from CSV lists of its recordings."""

import csv
import io
import os
import posixpath
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from keras_ortho.files import json_sha256, read_bytes

from .corpus import Corpus, Utterance, check_folder
from .splits import SPLITS

LARGEST_LIST = 2**27  # bytes; a list of LibriSpeech has a sixth of it
# An id may become part of a file name.
ID = re.compile(r"[^\s/.-][^\s/]*")
LONGEST_ID = 200  # bytes


class _Entry(NamedTuple):
    """A line of a list; `split` and `id` are `None` without such a column."""

    file: str
    speaker: str
    split: str | None
    id: str | None
    where: str


def list_corpus(
    root: str | os.PathLike[str], lists: Sequence[str | os.PathLike[str]]
) -> Corpus:
    """Reads a corpus from lists of its recordings, each `LIST` or `SPLIT=LIST`."""
    root = check_folder(root)
    entries = [entry for each in lists for entry in _read(os.fspath(each))]
    splits = {entry.split is None: entry.where for entry in entries}
    if len(splits) > 1:
        raise ValueError(
            "All lists must give splits, or none. "
            f"Received: {splits[False]} with one, {splits[True]} without"
        )
    utterances = [_utterance(entry, root) for entry in entries]
    places = [entry.where for entry in entries]
    _check_distinct("A file must be named once", [u.path for u in utterances], places)
    rule = "Utterances must have different ids, which a column `id` can give"
    _check_distinct(rule, [u.id for u in utterances], places)
    utterances.sort()
    digest = json_sha256([[u.id, u.path, u.speaker, u.part] for u in utterances])
    return Corpus(root, utterances, [], digest)


def _read(source: str) -> list[_Entry]:
    name, equals, path = source.partition("=")
    # A path may contain "=".
    split, path = (name, path) if equals and name in SPLITS else (None, source)
    if not os.path.exists(path):
        raise FileNotFoundError(
            "There is no such list; that of one split is given as "
            f"{', '.join(f'{name}=LIST' for name in SPLITS)}. Received: {path}"
        )
    entries = read_csv(path)
    if not entries:
        raise ValueError(f"A list must name a file. Received: {path}")
    if split is None:
        return entries
    if entries[0].split is not None:
        raise ValueError(
            f"A list that is given for {split!r} must have no column `split`. "
            f"Received: {path}"
        )
    return [entry._replace(split=split) for entry in entries]


def read_csv(path: str) -> list[_Entry]:
    """Reads a list, whose first line names its columns, in any order."""
    data = read_bytes(path, LARGEST_LIST)
    line = 1
    try:
        rows = csv.reader(
            io.StringIO(data.decode("utf-8-sig"), newline=""),
            skipinitialspace=True,
            strict=True,
        )
        names, entries = [name.strip() for name in next(rows, [])], []
        _check_columns(names, f"{path}, line 1")
        for row in rows:
            line = rows.line_num
            if row:
                entries.append(_entry(names, row, f"{path}, line {line}"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"A list must be in UTF-8. Received: {path}, line {line}: "
            f"the byte 0x{data[error.start]:02x}"
        ) from error
    except csv.Error as error:
        raise ValueError(
            f"A list must be a CSV file. Received: {path}, after line {line}: {error}"
        ) from error
    return entries


def _check_columns(names: list[str], where: str) -> None:
    for name in ("file", "speaker", "split", "id"):
        if names.count(name) > 1:
            raise ValueError(
                f"A list must have one column `{name}`. "
                f"Received: {where}: {', '.join(names):.200}"
            )
    for name in ("file", "speaker"):
        if name not in names:
            raise ValueError(
                "A list is a CSV file whose first line names the columns `file` and "
                f"`speaker`, and maybe `split` and `id`; there is no `{name}`. "
                f"Received: {where}: {', '.join(names):.200}"
            )


def _entry(names: list[str], row: list[str], where: str) -> _Entry:
    if len(row) != len(names):
        raise ValueError(
            f"A row must have as many fields as the first line, {len(names)}. "
            f"Received: {where}"
        )
    fields = dict(zip(names, row, strict=True))
    stripped = {name: value.strip() for name, value in fields.items()}
    # The file name is not stripped, since it may end with a space.
    file, speaker = fields["file"], stripped["speaker"]
    split, name = stripped.get("split"), stripped.get("id")
    if split not in (None, *SPLITS):
        raise ValueError(
            f"A split must be one of {SPLITS}. Received: {where}: {split!r}"
        )
    if not speaker:
        raise ValueError(f"An utterance must have a speaker. Received: {where}: {file}")
    if name is not None and not (
        ID.fullmatch(name) and name.isprintable() and len(name.encode()) <= LONGEST_ID
    ):
        raise ValueError(
            f"An id must have 1 to {LONGEST_ID} bytes, no blank and no slash, and not "
            f"begin with '.' or '-'. Received: {where}: {name!r}"
        )
    return _Entry(file, speaker, split, name, where)


def _utterance(entry: _Entry, root: Path) -> Utterance:
    path = _relative_path(entry, root)
    # Not `Path.is_file`, which raises errors for some names.
    if not os.path.isfile(os.path.join(root, path)):
        raise ValueError(
            f"There is no such file below {root}. Received: {entry.where}: {entry.file}"
        )
    name = entry.id or re.sub(r"^[.-]|[^\w.-]", "_", posixpath.splitext(path)[0])
    return Utterance(name, entry.speaker, "", "", entry.split, path)


def _relative_path(entry: _Entry, root: Path) -> str:
    path = Path(entry.file)
    for start in (root.absolute(), root.resolve()):
        if path.is_relative_to(start):
            path = path.relative_to(start)
    # A folder before ".." may be a link to elsewhere, so "a/../b" need not be "b".
    if path.anchor or path == Path() or ".." in path.parts:
        raise ValueError(
            "A list must name files by their paths below the corpus folder. "
            f"Received: {entry.where}: {entry.file!r}"
        )
    return path.as_posix()


def _check_distinct(rule: str, names: Sequence[str], places: Sequence[str]) -> None:
    first: dict[str, str] = {}
    for name, where in zip(names, places, strict=True):
        if name in first:
            raise ValueError(f"{rule}. Received: {where}: {name}, as {first[name]}")
        first[name] = where
