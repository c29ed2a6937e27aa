"""Reads the records of TIMIT from a folder that `keras-ortho-data` wrote."""

import hashlib
import json
import math
import os
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_ortho.audio.stft import NUM_BINS
from keras_ortho.checks import check_choice
from keras_ortho.extras import require
from keras_ortho.reading import read_json

FORMAT = "keras-ortho-timit"
FORMAT_VERSION = 2
MANIFEST = "manifest.json"
SPLITS = ("train", "valid", "test")
STATISTICS = ("mean", "std")
# LibriSpeech's manifest has a fifth of this size, or less than half with every file
# rejected.
LARGEST_MANIFEST = 2**27
SHARD_FILE = re.compile(r"[A-Za-z0-9_-]{1,200}\.tfrecord")

_LENGTH = struct.Struct("<Q4x")  # and its checksum
_CHECKSUM_BYTES = 4
_FLOAT_BYTES = 4


class Record(NamedTuple):
    """One utterance.

    Attributes:
        id: `"{speaker}_{sentence}"`, or, for listed recordings, the id in the list.
        speaker: The speaker.
        log_power: float32 `[frames, 129]`, in dB.
        audio: int16 `[samples]`, at 8 kHz.
    """

    id: str
    speaker: str
    log_power: np.ndarray
    audio: np.ndarray


def utterances(folder: str | os.PathLike[str], split: str) -> Iterator[Record]:
    """Returns the utterances of a split one by one, for scoring.

    Args:
        folder: Folder that `keras-ortho-data` wrote.
        split: `"train"`, `"valid"` or `"test"`.

    Returns:
        An iterator, in the order of the records, which is that of the task's batches
        unless they are shuffled or in buckets.

    Raises:
        FileNotFoundError: If the manifest, or a shard that it names, is missing.
        ImportError: If TensorFlow is not installed.
        ValueError: If there is no such split, or the manifest is damaged. During
            iteration, if a shard is damaged.

    Example:
    ```python
    for record in utterances("records", "test"):
        print(record.id, len(record.audio) / 8000, "s")
    ```
    """
    check_choice("split", split, SPLITS)
    shards = _shards(folder, read_manifest(folder), split)
    # Imported here, and not with the first utterance, to fail at once if it is missing.
    tf = require("tensorflow")
    return (record for path in shards for record in _read_shard(tf, path))


def _read_shard(tf: Any, path: Path) -> Iterator[Record]:
    try:
        for name, speaker, log_power, audio in _parsed(tf, [path]).as_numpy_iterator():
            yield Record(name.decode(), speaker.decode(), log_power, audio)
    except (tf.errors.OpError, UnicodeDecodeError) as error:
        raise ValueError(f"The shard is damaged. Received: {path}: {error}") from error


def read_manifest(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads a folder's manifest, and checks that its shards exist."""
    path = Path(folder, MANIFEST)
    if not path.is_file():
        raise FileNotFoundError(
            f"The folder has no {MANIFEST}: create the records with `keras-ortho-data` "
            f"(`python -m keras_ortho.data_prep`). Received: {os.fspath(folder)}"
        )
    manifest = read_json(path, LARGEST_MANIFEST)
    if not isinstance(manifest, dict):
        raise ValueError(
            f"{path} must contain a JSON object. Received: {type(manifest)}"
        )
    found = (manifest.get("format"), manifest.get("version"))
    if found != (FORMAT, FORMAT_VERSION):
        raise ValueError(
            f"{path} must be of format {FORMAT!r}, version {FORMAT_VERSION}: create "
            f"the records again with `keras-ortho-data`. Received: {found}"
        )
    _check_statistics(manifest.get("statistics"), path)
    splits = manifest.get("splits")
    if not isinstance(splits, dict) or set(splits) != set(SPLITS):
        raise ValueError(
            f"{path} must describe the splits {SPLITS}. "
            f"Received: {list(splits) if isinstance(splits, dict) else type(splits)}"
        )
    for name, split in splits.items():
        _check_split(split, f"{path}, split {name!r}")
        for shard in split["shards"]:
            _check_shard(Path(folder, shard["file"]), shard["bytes"])
    return manifest


def fingerprint(folder: str | os.PathLike[str]) -> str:
    """Identifies the records of a folder, which may have held others before."""
    splits = read_manifest(folder)["splits"]
    sums = {name: [s["sha256"] for s in splits[name]["shards"]] for name in SPLITS}
    return hashlib.sha256(json.dumps(sums).encode()).hexdigest()


def _check_statistics(statistics: Any, path: Path) -> None:
    """Checks that there is a mean and a standard deviation of each bin."""
    if not isinstance(statistics, dict) or not all(
        _are_levels(statistics.get(name)) for name in STATISTICS
    ):
        raise ValueError(
            f"`statistics` must contain {' and '.join(map(repr, STATISTICS))}, lists "
            f"of {NUM_BINS} finite numbers in dB. Received: {path}"
        )
    if min(statistics["std"]) < 0:
        raise ValueError(
            "A standard deviation must not be negative. "
            f"Received: {min(statistics['std'])}: {path}"
        )


def _are_levels(values: Any) -> bool:
    return (
        isinstance(values, list)
        and len(values) == NUM_BINS
        and all(type(value) is float and math.isfinite(value) for value in values)
    )


def _check_split(split: Any, where: str) -> None:
    """Checks the manifest's description of a split, and that its numbers agree."""
    if not isinstance(split, dict):
        raise ValueError(
            f"Each split must be a JSON object. Received: {type(split)}: {where}"
        )
    shards, frames = split.get("shards"), split.get("frames")
    if not isinstance(shards, list) or not all(map(_is_shard, shards)):
        raise ValueError(
            "`shards` must list files of the folder, with their sizes as `bytes`. "
            f"Received: {where}"
        )
    if not isinstance(frames, dict) or not all(map(_is_count, frames.values())):
        raise ValueError(
            "`frames` must list the number of frames of each utterance. Received: "
            f"{where}"
        )
    counts = {
        "num_utterances": len(frames),
        "num_frames": sum(frames.values()),
        "max_frames": max(frames.values(), default=0),
    }
    for key, count in counts.items():
        if not _is_count(split.get(key)) or split[key] != count:
            raise ValueError(
                f"`{key}` must agree with `frames`, which gives {count}. Received: "
                f"{split.get(key)!r:.40}: {where}"
            )
    size = sum(shard["bytes"] for shard in shards)
    if counts["num_frames"] * NUM_BINS * _FLOAT_BYTES > size:
        raise ValueError(
            f"{counts['num_frames']} frames do not fit into shards of {size} bytes. "
            f"Received: {where}"
        )


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_shard(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("file"), str)
        # No file in another folder, and no name that a file system cannot have.
        and SHARD_FILE.fullmatch(value["file"]) is not None
        and _is_count(value.get("bytes"))
    )


def _check_shard(path: Path, size: int) -> None:
    """Checks a shard's size, and that its records fill it."""
    if not path.is_file():
        raise FileNotFoundError(
            f"A shard that the manifest lists is missing. Received: {path}"
        )
    if path.stat().st_size != size:
        raise ValueError(
            f"A shard must have {size} bytes, according to the manifest. Received: "
            f"{path} of {path.stat().st_size} bytes"
        )
    place = 0
    with path.open("rb") as file:
        while place < size:
            file.seek(place)
            header = file.read(_LENGTH.size)
            if len(header) == _LENGTH.size:
                (length,) = _LENGTH.unpack(header)
                place += _LENGTH.size + length + _CHECKSUM_BYTES
            if len(header) < _LENGTH.size or place > size:
                raise ValueError(
                    f"A shard must consist of whole records. Received: {path}, whose "
                    "last record is truncated or damaged"
                )


def dataset(
    folder: str | os.PathLike[str], manifest: Mapping[str, Any], split: str
) -> Any:
    """Returns a split as a `tf.data.Dataset` of `(id, speaker, log_power, audio)`."""
    tf = require("tensorflow")
    return _parsed(tf, _shards(folder, manifest, split))


def _shards(
    folder: str | os.PathLike[str], manifest: Mapping[str, Any], split: str
) -> list[Path]:
    return [
        Path(folder, shard["file"]) for shard in manifest["splits"][split]["shards"]
    ]


def _parsed(tf: Any, shards: Sequence[Path]) -> Any:
    text = tf.io.FixedLenFeature([], tf.string)
    spec = dict.fromkeys(("utterance_id", "speaker", "log_power", "audio"), text)

    def parse(serialized: Any) -> tuple[Any, ...]:
        record = tf.io.parse_single_example(serialized, spec)
        log_power = tf.io.decode_raw(record["log_power"], tf.float32)
        return (
            record["utterance_id"],
            record["speaker"],
            tf.reshape(log_power, [-1, NUM_BINS]),
            tf.io.decode_raw(record["audio"], tf.int16),
        )

    return tf.data.TFRecordDataset(list(map(str, shards))).map(
        parse, num_parallel_calls=tf.data.AUTOTUNE
    )
