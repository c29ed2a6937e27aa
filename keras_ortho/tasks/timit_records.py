"""Reads the records of TIMIT from a folder that `keras-ortho-data` wrote."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_ortho.audio.stft import NUM_BINS
from keras_ortho.checks import check, check_choice
from keras_ortho.extras import require
from keras_ortho.files import FilePath, naming, read_json

FORMAT = "keras-ortho-timit"
FORMAT_VERSION = 2
MANIFEST = "manifest.json"
SPLITS = ("train", "valid", "test")
LARGEST_MANIFEST = 2**27  # bytes; LibriSpeech's has a fifth


class Record(NamedTuple):
    """One utterance.

    Attributes:
        id, speaker: Its name, for TIMIT `"{speaker}_{sentence}"`, and the speaker.
        log_power: float32 `[frames, 129]`, in dB.
        audio: int16 `[samples]`, at 8 kHz.
    """

    id: str
    speaker: str
    log_power: np.ndarray
    audio: np.ndarray


def utterances(folder: FilePath, split: str) -> Iterator[Record]:
    """Returns the utterances of a split one by one, for scoring.

    Args:
        folder: Folder that `keras-ortho-data` wrote.
        split: `"train"`, `"valid"` or `"test"`.

    Returns:
        An iterator of each `Record`, in the order of the split.

    Raises:
        ValueError: If there is no such split, or a file is damaged.

    Example:
    ```python
    for record in utterances("records", "test"):
        print(record.id, len(record.audio) / 8000, "s")
    ```
    """
    check_choice("split", split, SPLITS)
    records = dataset(folder, read_manifest(folder), split)
    return (
        Record(name.decode(), speaker.decode(), log_power, audio)
        for name, speaker, log_power, audio in records.as_numpy_iterator()
    )


def read_manifest(folder: FilePath) -> dict[str, Any]:
    """Reads a folder's manifest, and checks the sizes of the shards."""
    path = Path(folder, MANIFEST)
    if not path.is_file():
        raise FileNotFoundError(
            f"The folder has no {MANIFEST}: create the records with `keras-ortho-data` "
            f"(`python -m keras_ortho.data_prep`). Received: {os.fspath(folder)}"
        )
    manifest = read_json(path, largest=LARGEST_MANIFEST)
    with naming(path):
        found = (manifest["format"], manifest["version"])
        wanted = f"be {FORMAT!r}, version {FORMAT_VERSION}: create the records again"
        check(found == (FORMAT, FORMAT_VERSION), "format", wanted, found)
        for split in SPLITS:
            for shard in manifest["splits"][split]["shards"]:
                place = Path(folder, shard["file"])
                if place.stat().st_size != shard["bytes"]:
                    raise ValueError(f"{place} must have {shard['bytes']} bytes")
    return manifest


def fingerprint(folder: FilePath) -> str:
    """Identifies the records of a folder, which may have held others before."""
    splits = read_manifest(folder)["splits"]
    sums = {name: [s["sha256"] for s in splits[name]["shards"]] for name in SPLITS}
    return hashlib.sha256(json.dumps(sums).encode()).hexdigest()


def dataset(folder: FilePath, manifest: Mapping[str, Any], split: str) -> Any:
    """Returns a split as a `tf.data.Dataset` of `(id, speaker, log_power, audio)`."""
    tf = require("tensorflow")
    shards = [str(Path(folder, s["file"])) for s in manifest["splits"][split]["shards"]]
    text = tf.io.FixedLenFeature([], tf.string)
    spec = dict.fromkeys(("utterance_id", "speaker", "log_power", "audio"), text)

    def parse(serialized: Any) -> tuple[Any, ...]:
        record = tf.io.parse_single_example(serialized, spec)
        power = tf.io.decode_raw(record["log_power"], tf.float32)
        audio = tf.io.decode_raw(record["audio"], tf.int16)
        power = tf.reshape(power, [-1, NUM_BINS])
        return record["utterance_id"], record["speaker"], power, audio

    return tf.data.TFRecordDataset(shards).map(
        parse, num_parallel_calls=tf.data.AUTOTUNE
    )
