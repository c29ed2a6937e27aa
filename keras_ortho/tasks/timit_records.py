"""Reads the records of TIMIT from a folder that `keras-ortho-data` wrote."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_ortho.audio.stft import NUM_BINS
from keras_ortho.checks import check_choice
from keras_ortho.extras import require
from keras_ortho.reading import naming, read_json

FORMAT = "keras-ortho-timit"
FORMAT_VERSION = 2
MANIFEST = "manifest.json"
SPLITS = ("train", "valid", "test")
STATISTICS = ("mean", "std")
# LibriSpeech's manifest has a fifth of this size, or less than half with every file
# rejected.
LARGEST_MANIFEST = 2**27


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
    """Reads a folder's manifest, and checks that it agrees with the shards."""
    path = Path(folder, MANIFEST)
    if not path.is_file():
        raise FileNotFoundError(
            f"The folder has no {MANIFEST}: create the records with `keras-ortho-data` "
            f"(`python -m keras_ortho.data_prep`). Received: {os.fspath(folder)}"
        )
    manifest = read_json(path, LARGEST_MANIFEST)
    with naming(path):
        found = (manifest["format"], manifest["version"])
        if found != (FORMAT, FORMAT_VERSION):
            raise ValueError(
                f"it must be of format {FORMAT!r}, version {FORMAT_VERSION}, not "
                f"{found}: create the records again with `keras-ortho-data`"
            )
        for name in STATISTICS:
            levels = np.array(manifest["statistics"][name], np.float64)
            if levels.shape != (NUM_BINS,) or not np.isfinite(levels).all():
                raise ValueError(f"{name!r} must hold {NUM_BINS} finite numbers")
        for name in SPLITS:
            split = manifest["splits"][name]
            frames = list(split["frames"].values())
            counts = {
                "num_utterances": len(frames),
                "num_frames": sum(frames),
                "max_frames": max(frames, default=0),
            }
            for key, count in counts.items():
                if split[key] != count:
                    raise ValueError(
                        f"{key!r} of {name!r} must agree with 'frames', which gives "
                        f"{count}, not {split[key]}"
                    )
            sizes = {Path(folder, s["file"]): s["bytes"] for s in split["shards"]}
            for place, size in sizes.items():
                if place.stat().st_size != size:
                    raise ValueError(f"{place} must have {size} bytes")
            if counts["num_frames"] * NUM_BINS * 4 > sum(sizes.values()):
                raise ValueError(f"the frames of {name!r} do not fit into its shards")
    return manifest


def fingerprint(folder: str | os.PathLike[str]) -> str:
    """Identifies the records of a folder, which may have held others before."""
    splits = read_manifest(folder)["splits"]
    sums = {name: [s["sha256"] for s in splits[name]["shards"]] for name in SPLITS}
    return hashlib.sha256(json.dumps(sums).encode()).hexdigest()


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
