"""The records of TIMIT that `python -m data_prep` makes, as they are in a folder."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_ortho.audio.stft import NUM_BINS
from keras_ortho.extras import require

FORMAT = "keras-ortho-timit"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
SPLITS = ("train", "valid", "test")


class Record(NamedTuple):
    """One utterance.

    Attributes:
        id: `"{speaker}_{sentence}"`.
        speaker: The speaker.
        log_power: float32 `[frames, 129]`, in dB.
        audio: int16 `[samples]`, at 8 kHz.
    """

    id: str
    speaker: str
    log_power: np.ndarray
    audio: np.ndarray


def utterances(folder: str | os.PathLike[str], split: str) -> Iterator[Record]:
    """The utterances of a split one by one, for scoring.

    Args:
        folder: What `python -m data_prep` wrote.
        split: `"train"`, `"valid"` or `"test"`.

    Returns:
        An iterator, in the order of the records: that of the task's batches where
        they are not shuffled.

    Raises:
        FileNotFoundError: As `read_manifest`.
        ImportError: If TensorFlow is not installed.
        ValueError: As `read_manifest`, or if there is no such split.

    Example:
    ```python
    for record in utterances("records", "test"):
        print(record.id, len(record.audio) / 8000, "s")
    ```
    """
    if split not in SPLITS:
        raise ValueError(f"`split` must be one of {SPLITS}. Received: {split!r}")
    records = dataset(folder, read_manifest(folder), split)
    return (
        Record(name.decode(), speaker.decode(), log_power, audio)
        for name, speaker, log_power, audio in records.as_numpy_iterator()
    )


def read_manifest(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads a folder's manifest, and checks that its shards are there.

    Args:
        folder: What `python -m data_prep` wrote.

    Returns:
        The contents of `manifest.json`.

    Raises:
        FileNotFoundError: If it, or a shard that it names, is missing.
        ValueError: If it is damaged or of another format, or a shard of another size.
    """
    path = Path(folder, MANIFEST)
    if not path.is_file():
        raise FileNotFoundError(
            f"No {MANIFEST}: make the records with `python -m data_prep`. "
            f"Received: {os.fspath(folder)}"
        )
    try:
        manifest = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} must be a file of JSON. Received: {error}") from error
    found = (manifest.get("format"), manifest.get("version"))
    if found != (FORMAT, FORMAT_VERSION):
        raise ValueError(
            f"{path} must be of format {FORMAT!r}, version {FORMAT_VERSION}. "
            f"Received: {found}"
        )
    for split in manifest["splits"].values():
        for shard in split["shards"]:
            _check_shard(Path(folder, shard["file"]), shard["bytes"])
    return manifest


def _check_shard(path: Path, size: int) -> None:
    if not path.is_file():
        raise FileNotFoundError(
            f"The manifest names a shard that is missing. Received: {path}"
        )
    if path.stat().st_size != size:
        raise ValueError(
            f"A shard must have the {size} bytes that the manifest says. "
            f"Received: {path} of {path.stat().st_size} bytes"
        )


def dataset(
    folder: str | os.PathLike[str], manifest: Mapping[str, Any], split: str
) -> Any:
    """A split as a `tf.data.Dataset` of `(id, speaker, log_power, audio)`.

    Args:
        folder: What `python -m data_prep` wrote.
        manifest: Its manifest.
        split: `"train"`, `"valid"` or `"test"`.

    Returns:
        The dataset, in the order of the records.

    Raises:
        ImportError: If TensorFlow is not installed.
    """
    tf = require("tensorflow")
    shards = manifest["splits"][split]["shards"]
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

    files = [str(Path(folder, shard["file"])) for shard in shards]
    return tf.data.TFRecordDataset(files).map(
        parse, num_parallel_calls=tf.data.AUTOTUNE
    )
