"""TIMIT: its records, and the prediction of the next frame, in dB, from all before.

The error that Wisdom et al. (2016) report divides the squared errors of the valid steps
by the number of *all* steps; so does `loss="mse"`, if every batch is padded to the
longest utterance of its split.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from keras_ortho.audio.stft import NUM_BINS, SILENCE_DB
from keras_ortho.checks import check, check_choice, check_count
from keras_ortho.extras import require
from keras_ortho.files import FilePath, naming, read_json
from keras_ortho.tasks.pipeline import another_each_time, made_ahead, order_of_pass

__all__ = ["Record", "Timit", "load", "utterances"]

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


@dataclass(frozen=True)
class Timit:
    """The splits of the task, and their sizes.

    Attributes:
        train: `tf.data.Dataset` of batches `(x, y, sample_weight)`, in a new order
            each epoch; `None` if not requested, like the other splits.
        valid, test: As `train`, in the order of the records or, in buckets, of length.
        passes: As for `keras_ortho.tasks.pipeline.Task`.
        num_utterances, num_frames: Utterances and valid frames of each split.
        max_frames: Number of frames of the longest utterance of each split.
        mean, std: Of each bin over the training frames, in dB, float64 `[129]`.
    """

    train: Any
    valid: Any
    test: Any
    passes: Any
    num_utterances: Mapping[str, int]
    num_frames: Mapping[str, int]
    max_frames: Mapping[str, int]
    mean: np.ndarray
    std: np.ndarray


def load(
    folder: FilePath,
    *,
    batch_size: int = 28,
    splits: Sequence[str] = SPLITS,
    shuffle_seed: int | None = 0,
    pad_to: Literal["split", "batch", "bucket"] = "split",
    legacy_swapped_targets: bool = False,
) -> Timit:
    """Makes the datasets of the task from the records in a folder.

    For an utterance of L frames, `x` holds frames 0 .. L-1 and `y` frames 1 .. L,
    where frame L is silence: the last of the L valid targets is -50 dB in all bins.
    The steps after them are -50 dB in both, with weight 0.

    Args:
        folder: Folder that `keras-ortho-data` wrote.
        batch_size: Utterances in a batch; the last may have fewer. Default: 28.
        splits: Which of `"train"`, `"valid"` and `"test"` to make. Default: all.
        shuffle_seed: Seed of the orders of `train`; `None` keeps that of the records.
            A split in another order is held in memory. Default: 0.
        pad_to: `"split"` pads every batch to the longest utterance of the split, as
            the papers do, `"batch"` to that of the batch, and `"bucket"` batches of
            about the same length to the next multiple of 8. Default: `"split"`.
        legacy_swapped_targets: Whether to exchange `x` and `y`: published errors near
            0.13 dB^2 fit that delay, and not prediction. Default: `False`.

    Returns:
        The datasets, of `x` and `y` float32 `[batch, T, 129]` in dB and
        `sample_weight` float32 `[batch, T]`, and the sizes of the splits.

    Raises:
        ValueError: If an argument is invalid, or a file is damaged.

    Example:
    ```python
    data = load("records")
    model.fit(data.train, validation_data=data.valid, epochs=200)
    ```
    """
    check_count("batch_size", batch_size)
    check_choice("pad_to", pad_to, ("split", "batch", "bucket"))
    manifest = read_manifest(folder)
    made: dict[str, Any] = dict.fromkeys((*SPLITS, "passes"))
    options = (batch_size, pad_to, legacy_swapped_targets)
    for name in splits:
        check_choice("splits", name, SPLITS)
        seed = shuffle_seed if name == "train" else None
        made[name], passes = _split(folder, manifest, name, seed, *options)
        if name == "train":
            made["passes"] = passes
    for key in ("num_utterances", "num_frames", "max_frames"):
        made[key] = {name: manifest["splits"][name][key] for name in SPLITS}
    mean, std = (np.array(manifest["statistics"][key]) for key in ("mean", "std"))
    return Timit(**made, mean=mean, std=std)


def _split(
    folder: FilePath,
    manifest: Mapping[str, Any],
    name: str,
    seed: int | None,
    batch_size: int,
    pad_to: str,
    swapped: bool,
) -> tuple[Any, Any]:
    """Makes the batches of a split, and what `train` needs of them."""
    tf = require("tensorflow")
    sizes = manifest["splits"][name]
    longest = sizes["max_frames"] if pad_to == "split" else None
    # XLA compiles a program for each length.
    multiple = 8 if pad_to == "bucket" else 1
    frames = dataset(folder, manifest, name).map(lambda *record: record[2])

    def example(x: Any) -> tuple[Any, Any, Any]:
        valid = tf.shape(x)[0]
        steps = -(-valid // multiple) * multiple
        silence = [[0, steps + 1 - valid], [0, 0]]
        x = tf.pad(x, silence, constant_values=SILENCE_DB)
        x, y = (x[1:], x[:-1]) if swapped else (x[:-1], x[1:])
        return x, y, tf.sequence_mask(valid, steps, tf.float32)

    def batches(frames: Any) -> Any:
        shapes = [longest, NUM_BINS], [longest, NUM_BINS], [longest]
        padding = SILENCE_DB, SILENCE_DB, 0.0
        padded = frames.map(example).padded_batch(batch_size, shapes, padding)
        return made_ahead(padded, -(-sizes["num_utterances"] // batch_size))

    def one_pass(number: Any) -> Any:
        if seed is None:
            order = np.argsort(lengths, kind="stable")
        elif pad_to == "bucket":
            order = order_in_buckets(lengths, number, batch_size=batch_size, seed=seed)
        else:
            order = order_of_pass(len(lengths), seed, number)
        indices = tf.data.Dataset.from_tensor_slices(order)
        return batches(indices.map(lambda index: held[index]))

    if seed is not None or pad_to == "bucket":
        with tf.device("CPU"):
            held = frames.ragged_batch(sizes["num_utterances"]).get_single_element()
            lengths = held.row_lengths().numpy()
    if seed is None:
        data = one_pass(0) if pad_to == "bucket" else batches(frames)
        return data, data
    return another_each_time(one_pass, seed), one_pass


def order_in_buckets(
    lengths: np.ndarray, number: Any, *, batch_size: int, seed: int
) -> Any:
    """Returns an order of sequences with about the same length in each batch."""
    tf = require("tensorflow")
    count = len(lengths)
    # Sorted by lengths increased by up to a tenth; a smaller batch stays the last.
    drawn = tf.cast(order_of_pass(count, seed, number), tf.float32) / count
    taken = tf.cast(lengths, tf.float32) * (1 + 0.1 * drawn)
    by_length = tf.cast(tf.argsort(taken, stable=True), tf.int64)
    batches, rest = divmod(count, batch_size)
    whole, last = by_length[: count - rest], by_length[count - rest :]
    order = order_of_pass(batches, seed, number)
    mixed = tf.gather(tf.reshape(whole, (batches, batch_size)), order)
    return tf.concat([tf.reshape(mixed, (-1,)), last], axis=0)
