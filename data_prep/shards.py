"""Plans, writes and reads shards of records.

The name of a shard contains a signature of everything that determines its contents. An
intact shard never has to be overwritten, because any change results in a new name.
"""

import hashlib
import platform
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_ortho.audio.stft import (
    FRAME_LENGTH,
    HOP_LENGTH,
    NUM_BINS,
    POWER_FLOOR,
    SAMPLE_RATE,
)
from keras_ortho.executors import check_shared
from keras_ortho.extras import require
from keras_ortho.files import LOCK, json_sha256, read_bytes, replacing
from keras_ortho.tasks.timit import FORMAT, FORMAT_VERSION, dataset

from .corpus import Unused, Utterance
from .features import Features, extract
from .splits import SPLITS, Splits

LARGEST = 2**28  # bytes of a recording; ten minutes at 192 kHz and 16 bits fit
PARAMETERS: dict[str, int | float] = {
    "frame_length": FRAME_LENGTH,
    "hop_length": HOP_LENGTH,
    "num_bins": NUM_BINS,
    "power_floor": POWER_FLOOR,
    "sample_rate": SAMPLE_RATE,
}


class Shard(NamedTuple):
    """A shard: its split, its utterances with the SHA-256 of each, and its file."""

    split: str
    sources: list[tuple[Utterance, str]]
    file: str


class Contents(NamedTuple):
    """What a shard contains.

    Attributes:
        frames: Number of frames of each utterance.
        samples: Number of samples, at 8 kHz.
        moments: float64 `[2, 129]`, the sums of each bin and of its square.
        rejected: Recordings of the shard that are damaged or otherwise unusable.
    """

    frames: dict[str, int]
    samples: int
    moments: np.ndarray
    rejected: list[Unused]


def library_versions() -> dict[str, str]:
    """Returns the versions of the libraries that compute the features."""
    names = ("librosa", "numpy", "scipy", "soundfile")
    versions = {name: require(name, extra="speech").__version__ for name in names}
    soundfile = require("soundfile", extra="speech")
    return versions | {"libsndfile": soundfile.__libsndfile_version__}


def plan_shards(
    splits: Splits, digests: Mapping[str, str], num_shards: Mapping[str, int]
) -> list[Shard]:
    """Distributes the utterances of each split over its shards.

    The shard of an utterance depends only on its id, so adding, changing or removing a
    file affects a single shard. Utterances without a digest are left out.
    """
    versions = library_versions()
    shards = []
    for split in SPLITS:
        count = num_shards[split]
        members: dict[int, list[tuple[Utterance, str]]] = {}
        for u in sorted(splits[split]):
            if u.id in digests:
                index = shard_index(u.id, count)
                members.setdefault(index, []).append((u, digests[u.id]))
        for index, chosen in sorted(members.items()):
            contents = {
                "format": [FORMAT, FORMAT_VERSION],
                "parameters": PARAMETERS,
                "versions": versions,
                "shard": [split, index, count],
                "sources": [[_recorded(u), digest] for u, digest in chosen],
            }
            signature = json_sha256(contents)[:16]
            file = f"{split}-{index:05d}-of-{count:05d}-{signature}.tfrecord"
            shards.append(Shard(split, chosen, file))
    return shards


def shard_index(utterance_id: str, count: int) -> int:
    """Returns the index of an utterance's shard, the same on every machine."""
    digest = hashlib.sha256(utterance_id.encode()).digest()
    return int.from_bytes(digest[:8], "big") % count


def _recorded(u: Utterance) -> list[str]:
    # Without the part, whose place the split takes.
    return [u.id, u.speaker, u.sentence, u.dialect, u.path]


def write_shard(
    shard: Shard, root: Path, out: Path, versions: Mapping[str, str]
) -> Contents:
    """Writes a shard, possibly in a worker process on another machine."""
    import tensorflow as tf  # Imported here because the import takes seconds.

    check_shared(out / LOCK)
    own = library_versions()
    if own != versions:
        raise ValueError(
            f"The libraries of a worker on {platform.node()} must be those of the "
            f"command, {dict(versions)}. Received: {own}"
        )
    rejected: list[Unused] = []

    def written() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        for utterance, digest in shard.sources:
            features, reason = _extract(utterance, digest, root)
            if features:
                writer.write(encode(utterance, features))
                yield utterance.id, features.log_power, features.audio
            else:
                rejected.append(Unused(utterance.path, reason))

    try:
        with (
            replacing(out / shard.file) as aside,
            tf.io.TFRecordWriter(str(aside)) as writer,
        ):
            return Contents(*_describe(written()), rejected)
    except tf.errors.OpError as error:
        raise OSError(f"Cannot write {shard.file}: {error.message}") from error


def read_shard(shard: Shard, root: Path, out: Path) -> Contents | None:
    """Returns what a shard contains, or `None` if it is missing or damaged."""
    tf = require("tensorflow")
    if not (out / shard.file).is_file():
        return None
    manifest = {"splits": {shard.split: {"shards": [{"file": shard.file}]}}}
    records = dataset(out, manifest, shard.split).as_numpy_iterator()
    try:
        described = _describe((name.decode(), *rest) for name, _, *rest in records)
    except tf.errors.OpError:
        return None
    rejected = []
    for utterance, digest in shard.sources:
        if utterance.id not in described[0]:
            features, reason = _extract(utterance, digest, root)
            if features:
                return None
            rejected.append(Unused(utterance.path, reason))
    return Contents(*described, rejected)


def _describe(
    records: Iterable[tuple[str, np.ndarray, np.ndarray]],
) -> tuple[dict[str, int], int, np.ndarray]:
    frames, samples, moments = {}, 0, np.zeros((2, NUM_BINS))
    for name, log_power, audio in records:
        frames[name] = len(log_power)
        samples += len(audio)
        values = log_power.astype(np.float64)
        moments += np.stack([values.sum(axis=0), (values**2).sum(axis=0)])
    return frames, samples, moments


def encode(utterance: Utterance, features: Features) -> bytes:
    """Serializes an utterance as a `tf.train.Example`, always to the same bytes."""
    import tensorflow as tf

    values = {
        "utterance_id": utterance.id.encode(),
        "speaker": utterance.speaker.encode(),
        "sentence": utterance.sentence.encode(),
        "dialect": utterance.dialect.encode(),
        "log_power": features.log_power.astype("<f4").tobytes(),
        "audio": features.audio.astype("<i2").tobytes(),
    }
    frames = tf.train.Int64List(value=[len(features.log_power)])
    feature = {
        name: tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
        for name, value in values.items()
    }
    feature["num_frames"] = tf.train.Feature(int64_list=frames)
    example = tf.train.Example(features=tf.train.Features(feature=feature))
    # Otherwise protocol buffers do not define the order of a map's entries.
    return example.SerializeToString(deterministic=True)


def read_source(path: Path) -> tuple[bytes, str]:
    """Reads a recording, and returns its SHA-256."""
    data = read_bytes(path, LARGEST)
    return data, hashlib.sha256(data).hexdigest()


def _extract(
    utterance: Utterance, digest: str, root: Path
) -> tuple[Features | None, str]:
    """Returns the features of an utterance, or why it has none."""
    data, found = read_source(root / utterance.path)
    if found != digest:
        raise OSError(
            "The file changed during the run; run again. "
            f"Received: {root / utterance.path}"
        )
    try:
        return extract(data, name=utterance.path), ""
    except ValueError as error:
        return None, str(error).removesuffix(f" Received: {utterance.path}")
