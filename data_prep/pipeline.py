"""Turns a corpus into a folder of records with a manifest."""

import csv
import functools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_ortho.audio.stft import SAMPLE_RATE
from keras_ortho.checks import check_count
from keras_ortho.executors import in_parallel
from keras_ortho.extras import require
from keras_ortho.files import file_sha256, locked, read_json, replacing, write_json
from keras_ortho.tasks.timit import FORMAT, FORMAT_VERSION, LARGEST_MANIFEST, MANIFEST

from .corpus import Corpus, Unused, Utterance, discover
from .listed import list_corpus
from .shards import (
    PARAMETERS,
    Contents,
    Shard,
    library_versions,
    plan_shards,
    read_shard,
    read_source,
    write_shard,
)
from .splits import SPLITS, Splits, resolve_mode, split, split_listed

NUM_SHARDS = {"train": 16, "valid": 4, "test": 2}
REPORT = "report.csv"
COLUMNS = ("path", "reason")
# Earlier versions wrote a .json beside each shard.
OWN_FILE = re.compile(
    rf"(?:tmp-\d+-)?(?:(?:{'|'.join(SPLITS)})-\d{{5,}}-of-\d{{5,}}-[0-9a-f]{{16}}"
    rf"\.(?:tfrecord|json)|{re.escape(MANIFEST)}|{re.escape(REPORT)})"
)


class Outcome(NamedTuple):
    """The result of a run.

    Attributes:
        manifest: Contents of the manifest.
        written: Number of shards written. The others existed already.
        rejected: Recordings that are unreadable, damaged or otherwise unusable.
        passed_over: Files that are copies or not utterances.
    """

    manifest: Mapping[str, Any]
    written: int
    rejected: list[Unused]
    passed_over: list[Unused]


def prepare(
    corpus: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    lists: Sequence[str | os.PathLike[str]] = (),
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
    out = Path(out).absolute()
    num_shards = {name: check_count("num_shards", num_shards[name]) for name in SPLITS}
    source, target = Path(corpus).resolve(), out.resolve()
    if target.is_relative_to(source) or source.is_relative_to(target):
        raise ValueError(
            "`out` must lie apart from `corpus`, neither inside the other. "
            f"Received: {out} and {corpus}"
        )
    found, splits, how = _divide(corpus, lists, mode, seed)
    with locked(out):
        chosen = [u for name in SPLITS for u in splits[name]]
        _check_own(out, {u.id for u in chosen})
        digests, rejected = _hash_all(found.root, chosen)
        shards = plan_shards(splits, digests, num_shards)
        root = found.root.absolute()
        made = {shard.file: read_shard(shard, root, out) for shard in shards}
        # Largest first, so that no large shard is left for the end.
        missing = [shard for shard in shards if made[shard.file] is None]
        missing.sort(key=lambda shard: -len(shard.sources))
        write = functools.partial(
            write_shard, root=root, out=out, versions=library_versions()
        )
        total = sum(len(shard.sources) for shard in shards)
        todo = sum(len(shard.sources) for shard in missing)
        with require("tqdm", extra="speech").tqdm(
            total=total,
            initial=total - todo,
            unit="utterance",
            disable=None if progress else True,
        ) as bar:
            # One at a time, so that a batch of them is not lost with its worker.
            results = in_parallel(write, missing, workers, scheduler, batch_size=1)
            for shard, contents in zip(missing, results, strict=True):
                made[shard.file] = contents
                bar.update(len(shard.sources))
        filled = [(shard, c) for shard in shards if (c := made[shard.file])]
        rejected += [each for _, c in filled for each in c.rejected]
        rejected.sort()
        if strict and rejected:
            raise ValueError(
                f"Files that cannot be used: {len(rejected)}{list_unused(rejected)}"
            )
        how["num_shards"] = num_shards
        manifest = _manifest(out, filled, rejected, how)
        _write_report(out, sorted(rejected + found.passed_over))
        write_json(out / MANIFEST, manifest)
        _prune(out, {MANIFEST, REPORT, *made})
    return Outcome(manifest, len(missing), rejected, found.passed_over)


def list_unused(unused: Iterable[Unused]) -> str:
    """Returns files with the reasons, each on a new line."""
    lines = "".join(f"\n  {path}: {reason}" for path, reason in unused)
    # A path need not be valid UTF-8.
    return lines.encode(errors="backslashreplace").decode()


def _divide(
    corpus: str | os.PathLike[str],
    lists: Sequence[str | os.PathLike[str]],
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


def _check_own(out: Path, utterances: set[str]) -> None:
    """Refuses to replace files of something else, or records of another corpus."""
    try:
        values = read_json(out / MANIFEST, largest=LARGEST_MANIFEST)
    except (FileNotFoundError, ValueError):
        values = {}  # A damaged manifest is replaced, as is an empty one.
    report, header = out / REPORT, ",".join(COLUMNS)
    own = {
        MANIFEST: not values
        or (isinstance(values, dict) and values.get("format") == FORMAT),
        REPORT: not report.exists()
        or report.read_text(errors="replace").partition("\n")[0] in ("", header),
    }
    for name in own:
        if not own[name]:
            raise ValueError(
                f"`out` must be a folder without {name}, or one with records. "
                f"Received: {out / name}, which was written otherwise"
            )
    found = {id for part in values.get("splits", {}).values() for id in part["frames"]}
    if found and found.isdisjoint(utterances):
        raise ValueError(
            "`out` must not hold the records of another corpus, which would be "
            f"removed. Received: {out}, with {len(found)} utterances, none of them "
            "in this corpus"
        )


def _hash_all(
    root: Path, utterances: Sequence[Utterance]
) -> tuple[dict[str, str], list[Unused]]:
    """Returns the SHA-256 of the files of utterances, and those without one."""

    def hash_one(utterance: Utterance) -> tuple[str, str]:
        try:
            return read_source(root / utterance.path)[1], ""
        except OSError as error:
            return "", f"Cannot be read: {error.strerror}"
        except ValueError as error:
            return "", str(error).partition(" Received: ")[0]

    with ThreadPoolExecutor(8) as threads:
        hashed = list(zip(utterances, threads.map(hash_one, utterances), strict=True))
    digests = {u.id: digest for u, (digest, _) in hashed if digest}
    return digests, [Unused(u.path, reason) for u, (_, reason) in hashed if reason]


def _manifest(
    out: Path,
    contents: Sequence[tuple[Shard, Contents]],
    rejected: Sequence[Unused],
    how: Mapping[str, Any],
) -> dict[str, Any]:
    """Describes the records; the description depends only on them."""
    splits, totals = {}, {}
    for name in SPLITS:
        files = [shard.file for shard, c in contents if shard.split == name]
        mine = [c for shard, c in contents if shard.split == name]
        frames = dict(sorted(item for c in mine for item in c.frames.items()))
        if not frames:
            raise ValueError(
                f"No usable utterance for {name!r}. Received: "
                f"{len(rejected)} rejected files{list_unused(rejected)}"
            )
        splits[name] = {
            "shards": [
                {
                    "file": file,
                    "sha256": file_sha256(out / file),
                    "bytes": (out / file).stat().st_size,
                }
                for file in files
            ],
            "frames": frames,
            "num_utterances": len(frames),
            "num_frames": sum(frames.values()),
            "max_frames": max(frames.values()),
            "seconds": sum(c.samples for c in mine) / SAMPLE_RATE,
        }
        # Summed in the order of the shards, so that the bytes are always the same.
        totals[name] = np.sum([c.moments for c in mine], axis=0)
    mean, mean_square = totals["train"] / splits["train"]["num_frames"]
    # Rounding may make the variance of a constant bin negative.
    std = np.sqrt(np.maximum(mean_square - mean**2, 0))
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "parameters": {**PARAMETERS, **how},
        "library_versions": library_versions(),
        "splits": splits,
        "statistics": {"mean": mean.tolist(), "std": std.tolist()},
        "rejected": [each._asdict() for each in rejected],
    }


def _write_report(out: Path, unused: Iterable[Unused]) -> None:
    """Writes the path of each file without a record, and the reason."""
    with (
        replacing(out / REPORT) as aside,
        aside.open("w", encoding="utf-8", errors="backslashreplace", newline="") as f,
    ):
        csv.writer(f, lineterminator="\n").writerows([COLUMNS, *unused])


def _prune(out: Path, files: set[str]) -> None:
    """Removes this program's files from earlier runs, and no others."""
    for path in out.iterdir():
        own = path.name not in files and OWN_FILE.fullmatch(path.name)
        # This program creates no folders in `out`.
        if own and not path.is_dir():
            path.unlink(missing_ok=True)
