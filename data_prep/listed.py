"""Reads a corpus other than TIMIT from lists of its recordings."""

import os
import posixpath
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from keras_ortho.files import json_sha256

from .corpus import Corpus, Utterance, check_folder
from .csv_list import read_csv
from .entries import Entry
from .kaldi_list import read_kaldi
from .splits import SPLITS

# An id may become part of a file name.
ID = re.compile(r"[^\s/.-][^\s/]*")
LONGEST_ID = 200  # bytes


class ListFile(NamedTuple):
    """A list of recordings.

    Attributes:
        path: A CSV file or a Kaldi data folder.
        split: `"train"`, `"valid"` or `"test"`, if all recordings in the list belong to
            that split. Default: `None`, the splits in the list, if it has any.
    """

    path: str | os.PathLike[str]
    split: str | None = None


def list_corpus(
    root: str | os.PathLike[str], lists: Sequence[str | os.PathLike[str] | ListFile]
) -> Corpus:
    """Reads a corpus from lists of its recordings."""
    root = check_folder(root)
    if isinstance(lists, str | os.PathLike | ListFile) or not lists:
        raise ValueError(f"`lists` must be a sequence of lists. Received: {lists!r}")
    sources = [s if isinstance(s, ListFile) else ListFile(s) for s in lists]
    entries = [entry for source in sources for entry in _read(source)]
    _check_splits(entries)
    roots = (root.absolute(), root.resolve())
    utterances = [_utterance(entry, root, roots) for entry in entries]
    named = list(zip(utterances, entries, strict=True))
    _check_distinct("A file must be named once", ((u.path, e.where) for u, e in named))
    _check_distinct(
        "Utterances must have different ids, which a column `id` can give",
        ((u.id, e.where) for u, e in named),
    )
    utterances.sort()
    digest = json_sha256([[u.id, u.path, u.speaker, u.part] for u in utterances])
    return Corpus(root, tuple(utterances), (), digest)


def _read(source: ListFile) -> list[Entry]:
    path = Path(source.path)
    if source.split not in (None, *SPLITS):
        raise ValueError(
            f"A list's split must be one of {SPLITS}. Received: {source.split!r}"
        )
    if not path.exists():
        raise FileNotFoundError(
            "There is no such list, a CSV file or a folder of Kaldi's; that of one "
            f"split is given as {', '.join(f'{name}=LIST' for name in SPLITS)}. "
            f"Received: {path}"
        )
    entries = read_kaldi(path) if path.is_dir() else read_csv(path)
    if not entries:
        raise ValueError(f"A list must name a file. Received: {path}")
    if source.split is None:
        return entries
    if entries[0].split is not None:
        raise ValueError(
            f"A list that is given for {source.split!r} must have no column `split`. "
            f"Received: {path}"
        )
    return [entry._replace(split=source.split) for entry in entries]


def _check_splits(entries: Sequence[Entry]) -> None:
    with_split = [entry for entry in entries if entry.split is not None]
    for entry in with_split:
        if entry.split not in SPLITS:
            raise ValueError(
                f"A split must be one of {SPLITS}. "
                f"Received: {entry.where}: {entry.split!r}"
            )
    if with_split and len(with_split) < len(entries):
        other = next(entry for entry in entries if entry.split is None)
        raise ValueError(
            "All lists must give splits, or none. "
            f"Received: {with_split[0].where} with one, {other.where} without"
        )


def _utterance(entry: Entry, root: Path, roots: Iterable[Path]) -> Utterance:
    path = _relative_path(entry, roots)
    # Not `Path.is_file`, which raises errors for some names.
    if not os.path.isfile(os.path.join(root, path)):
        raise ValueError(
            f"There is no such file below {root}. Received: {entry.where}: {entry.file}"
        )
    if not entry.speaker:
        raise ValueError(
            f"An utterance must have a speaker. Received: {entry.where}: {entry.file}"
        )
    name = _id_of(path) if entry.id is None else entry.id
    if (
        not ID.fullmatch(name)
        or not name.isprintable()
        or len(name.encode()) > LONGEST_ID
    ):
        raise ValueError(
            f"An id must have 1 to {LONGEST_ID} bytes, no blank and no slash, and not "
            f"begin with '.' or '-'. Received: {entry.where}: {name!r}"
        )
    return Utterance(
        id=name,
        speaker=entry.speaker,
        sentence="",
        dialect="",
        part=entry.split,
        path=path,
    )


def _relative_path(entry: Entry, roots: Iterable[Path]) -> str:
    path = Path(entry.file)
    for root in roots:
        if path.is_relative_to(root):
            path = path.relative_to(root)
    # A folder before ".." may be a link to elsewhere, so "a/../b" need not be "b".
    if path.anchor or path == Path() or ".." in path.parts:
        raise ValueError(
            "A list must name files by their paths below the corpus folder. "
            f"Received: {entry.where}: {entry.file!r}"
        )
    return path.as_posix()


def _id_of(path: str) -> str:
    return re.sub(r"^[.-]|[^\w.-]", "_", posixpath.splitext(path)[0])


def _check_distinct(rule: str, names: Iterable[tuple[str, str]]) -> None:
    places: dict[str, str] = {}
    for name, where in names:
        if name in places:
            raise ValueError(f"{rule}. Received: {where}: {name}, as {places[name]}")
        places[name] = where
