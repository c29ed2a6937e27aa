"""Assigns utterances to shards, and names the shards.

The name of a shard contains a signature of everything that determines its contents. An
intact shard never has to be overwritten, because any change results in a new name.
"""

import hashlib
import re
import stat
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from keras_ortho.audio.stft import (
    FRAME_LENGTH,
    HOP_LENGTH,
    NUM_BINS,
    POWER_FLOOR,
    SAMPLE_RATE,
)
from keras_ortho.extras import require
from keras_ortho.files import file_sha256, json_sha256
from keras_ortho.tasks.timit_records import FORMAT, FORMAT_VERSION

from .corpus import Unused, Utterance
from .splits import SPLITS, Splits

HASHING_THREADS = 8
LARGEST = 2**28  # bytes of a recording; ten minutes at 192 kHz and 16 bits fit
MOST_UTTERANCES = 100_000  # in a shard, whose sidecar is read as a whole
PARAMETERS: dict[str, int | float] = {
    "frame_length": FRAME_LENGTH,
    "hop_length": HOP_LENGTH,
    "num_bins": NUM_BINS,
    "power_floor": POWER_FLOOR,
    "sample_rate": SAMPLE_RATE,
}
OWN_FILE = re.compile(
    rf"(?:tmp-\d+-)?(?:(?:{'|'.join(SPLITS)})-\d{{5,}}-of-\d{{5,}}-[0-9a-f]{{16}}\.(?:tfrecord|json)"
    r"|manifest\.json|report\.csv)"
)


@dataclass(frozen=True)
class Source:
    """An utterance and the SHA-256 of its file."""

    utterance: Utterance
    sha256: str


@dataclass(frozen=True)
class Shard:
    """A shard to write, or to look for on disk.

    Attributes:
        split: `"train"`, `"valid"` or `"test"`.
        index: Index of the shard in the split, from 0.
        count: Number of shards of the split.
        sources: The utterances of the shard, sorted by id.
        signature: SHA-256 of everything that determines the contents.
    """

    split: str
    index: int
    count: int
    sources: tuple[Source, ...]
    signature: str

    @property
    def stem(self) -> str:
        """File name of the shard and of its sidecar, without the suffix."""
        return (
            f"{self.split}-{self.index:05d}-of-{self.count:05d}-{self.signature[:16]}"
        )


def library_versions() -> dict[str, str]:
    """Returns the versions of the libraries that compute the features."""
    modules = {
        name: require(name, extra="speech")
        for name in ("librosa", "numpy", "scipy", "soundfile")
    }
    versions = {name: module.__version__ for name, module in modules.items()}
    return versions | {"libsndfile": modules["soundfile"].__libsndfile_version__}


def hash_sources(
    root: Path, utterances: Iterable[Utterance]
) -> tuple[dict[str, Source], list[Unused]]:
    """Hashes the files of utterances."""
    sources, unreadable = {}, []
    utterances = list(utterances)
    with ThreadPoolExecutor(HASHING_THREADS) as threads:
        outcomes = threads.map(lambda u: _hash(root / u.path), utterances)
        for utterance, (digest, reason) in zip(utterances, outcomes, strict=True):
            if digest:
                sources[utterance.id] = Source(utterance, digest)
            else:
                unreadable.append(Unused(utterance.path, reason))
    return sources, unreadable


def _hash(path: Path) -> tuple[str, str]:
    try:
        status = path.stat()
        # Opening a pipe would wait for its other end.
        if not stat.S_ISREG(status.st_mode):
            return "", "Not a regular file"
        if status.st_size > LARGEST:
            return "", f"Too large: {status.st_size} bytes, more than {LARGEST}"
        return file_sha256(path), ""
    except OSError as error:
        return "", f"Cannot be read: {error.strerror}"


def plan_shards(
    splits: Splits, sources: Mapping[str, Source], num_shards: Mapping[str, int]
) -> list[Shard]:
    """Distributes the utterances of each split over its shards.

    The shard of an utterance depends only on its id, so adding, changing or removing a
    file affects a single shard.
    """
    versions = library_versions()
    shards = []
    for split in SPLITS:
        count = num_shards[split]
        members: dict[int, list[Source]] = {}
        for utterance in sorted(splits[split]):
            if utterance.id in sources:
                index = shard_index(utterance.id, count)
                members.setdefault(index, []).append(sources[utterance.id])
        for index, chosen in sorted(members.items()):
            if len(chosen) > MOST_UTTERANCES:
                raise ValueError(
                    f"`num_shards` must leave a shard at most {MOST_UTTERANCES} "
                    f"utterances. Received: {count} for {split!r}, and {len(chosen)} "
                    "utterances in one"
                )
            signature = _signature(split, index, count, chosen, versions)
            shards.append(Shard(split, index, count, tuple(chosen), signature))
    return shards


def shard_index(utterance_id: str, count: int) -> int:
    """Returns the index of an utterance's shard, the same on every machine."""
    digest = hashlib.sha256(utterance_id.encode()).digest()
    return int.from_bytes(digest[:8], "big") % count


def _signature(
    split: str,
    index: int,
    count: int,
    sources: Iterable[Source],
    versions: Mapping[str, str],
) -> str:
    contents = {
        "format": [FORMAT, FORMAT_VERSION],
        "parameters": PARAMETERS,
        "versions": versions,
        "shard": [split, index, count],
        # Without the part, whose place the split takes.
        "sources": [[_recorded(s.utterance), s.sha256] for s in sources],
    }
    return json_sha256(contents)


def _recorded(utterance: Utterance) -> list[str]:
    """Returns the fields of an utterance that its record and sidecar contain."""
    u = utterance
    return [u.id, u.speaker, u.sentence, u.dialect, u.path]
