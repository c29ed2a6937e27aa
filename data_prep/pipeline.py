"""Turns a corpus into a folder of records with a manifest."""

import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keras_ortho.checks import is_integer
from keras_ortho.executors import in_parallel
from keras_ortho.extras import require
from keras_ortho.files import read_json
from keras_ortho.locks import locked
from keras_ortho.tasks.timit_records import FORMAT, LARGEST_MANIFEST, MANIFEST

from .corpus import Corpus, Unused, discover
from .listed import ListFile, list_corpus
from .listed_splits import split_listed
from .manifest import build_manifest
from .plan import (
    HASHING_THREADS,
    OWN_FILE,
    Shard,
    hash_sources,
    library_versions,
    plan_shards,
)
from .report import REPORT, is_report, list_rejected, write_report
from .shards import Sidecar, find_shard, write_shared_shard
from .splits import SPLITS, Splits, resolve_mode, split
from .storage import write_json

NUM_SHARDS = {"train": 16, "valid": 4, "test": 2}


@dataclass(frozen=True)
class Outcome:
    """The result of a run.

    Attributes:
        manifest: Contents of the manifest.
        written: Number of shards written. The others existed already.
        rejected: Recordings that are unreadable, damaged or otherwise unusable.
        passed_over: Files that are copies or not utterances.
    """

    manifest: Mapping[str, Any]
    written: int
    rejected: tuple[Unused, ...]
    passed_over: tuple[Unused, ...]


def prepare(
    corpus: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    lists: Sequence[str | os.PathLike[str] | ListFile] = (),
    mode: str = "auto",
    seed: int = 0,
    num_shards: Mapping[str, int] = NUM_SHARDS,
    strict: bool = False,
    workers: int = 1,
    scheduler: str | None = None,
    progress: bool = False,
) -> Outcome:
    """Writes the records of a corpus, or updates them.

    Only shards whose sources or processing changed are written. The manifest is
    replaced last, so that it always names complete shards. If a run is killed, the next
    one continues it and produces the same bytes.
    """
    _check(Path(corpus), Path(out), num_shards, seed)
    found, splits, how = _divide(corpus, lists, mode, seed)
    out = Path(out)
    with locked(out):
        _check_own(out)
        chosen = [u for name in SPLITS for u in splits[name]]
        _check_same({u.id for u in chosen}, out)
        sources, unreadable = hash_sources(found.root, chosen)
        shards = plan_shards(splits, sources, num_shards)
        sidecars = _find_all(shards, out)
        missing = [shard for shard in shards if shard.stem not in sidecars]
        bar = require("tqdm", extra="speech").tqdm(
            total=sum(len(shard.sources) for shard in shards),
            initial=sum(len(s.sources) for s in shards if s.stem in sidecars),
            unit="utterance",
            disable=None if progress else True,
        )
        with bar:
            for shard, sidecar in _write_all(missing, found, out, workers, scheduler):
                sidecars[shard.stem] = sidecar
                bar.update(len(shard.sources))
        ordered = [(shard, sidecars[shard.stem]) for shard in shards]
        rejected = _rejected(ordered, unreadable)
        if strict and rejected:
            raise ValueError(
                f"Files that cannot be used: {len(rejected)}{list_rejected(rejected)}"
            )
        manifest = build_manifest(
            ordered, rejected, how | {"num_shards": {**num_shards}}
        )
        unused = sorted((*rejected, *found.passed_over), key=lambda u: u.path)
        write_report(out, unused)
        write_json(out / MANIFEST, manifest, LARGEST_MANIFEST)
        _prune(out, {shard.stem for shard in shards})
    return Outcome(manifest, len(missing), rejected, found.passed_over)


def _divide(
    corpus: str | os.PathLike[str],
    lists: Sequence[str | os.PathLike[str] | ListFile],
    mode: str,
    seed: int,
) -> tuple[Corpus, Splits, dict[str, Any]]:
    """Returns the corpus, its splits, and how it was divided, for the manifest."""
    if lists:
        found = list_corpus(corpus, lists)
        splits, mode = split_listed(found.utterances, mode, seed=seed)
    else:
        found = discover(corpus)
        mode = resolve_mode(mode, found.utterances)
        splits = split(found.utterances, mode, seed=seed)
    how = {"splits": mode, "seed": seed if mode == "speakers" else None}
    if found.list_sha256:
        how["list_sha256"] = found.list_sha256
    return found, splits, how


def _check(corpus: Path, out: Path, num_shards: Any, seed: Any) -> None:
    counts = num_shards if isinstance(num_shards, Mapping) else {}
    if set(counts) != set(SPLITS) or not all(
        is_integer(count) and count > 0 for count in counts.values()
    ):
        raise ValueError(
            f"`num_shards` must give each of {SPLITS} a positive integer. "
            f"Received: {num_shards}"
        )
    if not is_integer(seed):
        raise ValueError(f"`seed` must be an integer. Received: seed={seed!r}")
    source, target = corpus.resolve(), out.resolve()
    if target.is_relative_to(source) or source.is_relative_to(target):
        raise ValueError(
            "`out` must lie apart from `corpus`, neither inside the other. "
            f"Received: {out} and {corpus}"
        )
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"`out` must be a folder. Received: {out}")
    for name in (MANIFEST, REPORT):
        if (out / name).is_dir():
            raise IsADirectoryError(
                f"A folder is where {name} belongs. Received: {out / name}"
            )


def _check_own(out: Path) -> None:
    """Raises an error if a file that would be replaced has been written otherwise."""
    of_run = {MANIFEST: _is_manifest, REPORT: is_report}
    for name, is_own in of_run.items():
        if (out / name).exists() and not is_own(out / name):
            raise ValueError(
                f"`out` must be a folder without {name}, or one with records. "
                f"Received: {out / name}, which was written otherwise"
            )


def _is_manifest(path: Path) -> bool:
    try:
        values = read_json(path, largest=LARGEST_MANIFEST)
    except ValueError:
        return True  # A damaged manifest is replaced, as is an empty one.
    return not values or (isinstance(values, dict) and values.get("format") == FORMAT)


def _check_same(utterances: set[str], out: Path) -> None:
    """Raises an error if `out` contains records, but of none of the utterances."""
    path = out / MANIFEST
    if not path.exists():
        return
    try:
        before = read_json(path, largest=LARGEST_MANIFEST)["splits"].values()
        found = {id for of_split in before for id in of_split["frames"]}
    except (AttributeError, LookupError, TypeError, ValueError):
        return  # A damaged manifest is replaced.
    if found and found.isdisjoint(utterances):
        raise ValueError(
            "`out` must not hold the records of another corpus, which would be "
            f"removed. Received: {out}, with {len(found)} utterances, none of them "
            "in this corpus"
        )


def _find_all(shards: list[Shard], out: Path) -> dict[str, Sidecar]:
    with ThreadPoolExecutor(HASHING_THREADS) as threads:
        found = threads.map(lambda shard: find_shard(shard, out), shards)
        return {s.stem: f for s, f in zip(shards, found, strict=True) if f is not None}


def _write_all(
    shards: list[Shard], corpus: Corpus, out: Path, workers: int, scheduler: str | None
) -> Iterator[tuple[Shard, Sidecar]]:
    # Largest first, so that no large shard is left for the end.
    by_size = sorted(shards, key=lambda shard: -len(shard.sources))
    write = functools.partial(
        write_shared_shard,
        root=corpus.root.absolute(),
        out=out.absolute(),
        versions=library_versions(),
    )
    # One at a time, so that a batch of them is not lost with its worker.
    sidecars = in_parallel(write, by_size, workers, scheduler, batch_size=1)
    return zip(by_size, sidecars, strict=True)


def _rejected(
    shards: list[tuple[Shard, Sidecar]], unreadable: list[Unused]
) -> tuple[Unused, ...]:
    damaged = [Unused(**r) for _, sidecar in shards for r in sidecar["rejected"]]
    return tuple(sorted(unreadable + damaged, key=lambda unused: unused.path))


def _prune(out: Path, stems: set[str]) -> None:
    """Removes this program's files from earlier runs, and no others."""
    for path in out.iterdir():
        if (
            path.name not in (MANIFEST, REPORT)
            and OWN_FILE.fullmatch(path.name)
            and not (path.stem in stems and path.suffix in (".tfrecord", ".json"))
            # This program creates no folders in `out`.
            and not (path.is_dir() and not path.is_symlink())
        ):
            path.unlink(missing_ok=True)
