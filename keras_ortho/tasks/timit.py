"""TIMIT: predict the next frame of speech, in dB, from all frames before it.

This is the task of Wisdom et al., "Full-Capacity Unitary Recurrent Neural Networks"
(NeurIPS 2016), on records that `keras-ortho-data` writes.

The mean squared error that they and later papers report divides the squared errors of
the valid steps by the number of *all* steps, including padding. If every batch is
padded to the longest utterance of its split, Keras computes the same with `loss="mse"`
and the weights given here, because it averages weighted losses over all steps of a
batch.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from keras_ortho.audio.stft import NUM_BINS, SILENCE_DB
from keras_ortho.checks import check_choice, check_count, check_seed
from keras_ortho.extras import require
from keras_ortho.tasks.pipeline import another_each_time, made_ahead, order_of_pass
from keras_ortho.tasks.timit_records import (
    SPLITS,
    STATISTICS,
    Record,
    dataset,
    read_manifest,
    utterances,
)

PADDINGS = ("split", "batch", "bucket")
# Divides the length of batches in buckets: XLA compiles a program for each length.
MULTIPLE = 8
# Largest random increase of a length for sorting, as a fraction of it.
SPREAD = 0.1
# Largest difference of the lengths in a bucket, as a fraction of the shortest; so at
# most a sixth of a batch is padding.
WIDTH = 0.2
# Padding values of x, y and weight.
PADDING = (SILENCE_DB, SILENCE_DB, 0.0)

__all__ = ["Record", "Timit", "load", "utterances"]


@dataclass(frozen=True)
class Timit:
    """The splits of the task, and their sizes.

    Attributes:
        train: `tf.data.Dataset` of batches `(x, y, sample_weight)`, in a new order
            each epoch; `None` if not requested, like the other splits.
        valid: As `train`, in the order of the records unless in buckets.
        test: As `valid`.
        passes: As for `keras_ortho.tasks.pipeline.Task`; `None` if `train` is.
        num_utterances: Number of utterances of each split.
        num_frames: Number of valid frames of each split.
        max_frames: Number of frames of the longest utterance of each split.
        mean: float64 `[129]`, the mean of each bin over the frames of the training
            data, in dB.
        std: As `mean`, the standard deviation.
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
    folder: str | os.PathLike[str],
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
        batch_size: Number of utterances in a batch; the last batch of a split may have
            fewer. Default: 28.
        splits: Which of `"train"`, `"valid"` and `"test"` to make. Default: all.
        shuffle_seed: Seed of the orders of `train`; `None` keeps the order of the
            records. For shuffling, all features of `train` are held in memory.
            Default: 0.
        pad_to: `"split"` pads every batch to the longest utterance of the split, as
            the papers do. `"batch"` pads it to the longest of the batch, which changes
            the divisor of the mean over all steps. `"bucket"` batches utterances of
            about the same length, and pads them to the next multiple of 8. If `train`
            is shuffled, its batches then differ in each pass. Batches that are not
            shuffled are in no particular order, and smaller if few utterances are as
            long; apart from that multiple, at most a sixth of each is padding.
            Default: `"split"`.
        legacy_swapped_targets: Whether to exchange `x` and `y`, for comparison only.
            The network then reads frame t+1 and outputs frame t, a delay of one step
            that it can learn without error. Published errors near 0.13 dB^2 fit that
            task; for prediction they would imply speech that is indistinguishable from
            the original, which the published audio scores contradict. Default:
            `False`.

    Returns:
        The datasets, of `x` and `y` float32 `[batch, T, 129]` in dB and
        `sample_weight` float32 `[batch, T]`, and the sizes of the splits.

    Raises:
        FileNotFoundError: If the manifest or a shard that it names is missing.
        ImportError: If TensorFlow is not installed.
        ValueError: If an argument is invalid, or a file is damaged.

    Example:
    ```python
    data = load("records")
    model.fit(data.train, validation_data=data.valid, epochs=200)
    ```
    """
    batch_size = check_count("batch_size", batch_size)
    if shuffle_seed is not None:
        check_seed("shuffle_seed", shuffle_seed)
    named = list(splits) if isinstance(splits, Sequence | set) else []
    if not named or not all(name in SPLITS for name in named):
        raise ValueError(f"`splits` must be a subset of {SPLITS}. Received: {splits}")
    check_choice("pad_to", pad_to, PADDINGS)
    manifest = read_manifest(folder)
    sizes: dict[str, Any] = {
        key: {name: manifest["splits"][name][key] for name in SPLITS}
        for key in ("num_utterances", "num_frames", "max_frames")
    }
    datasets: dict[str, Any] = dict.fromkeys(SPLITS)
    for name in splits:
        frames = dataset(folder, manifest, name).map(lambda *record: record[2])
        count = sizes["num_utterances"][name]
        make = partial(
            _batches,
            count=count,
            batch_size=batch_size,
            longest=sizes["max_frames"][name] if pad_to == "split" else None,
            multiple=MULTIPLE if pad_to == "bucket" else 1,
            swapped=legacy_swapped_targets,
        )
        if name == "train" and shuffle_seed is not None:
            in_buckets = partial(order_in_buckets, batch_size=batch_size)
            order = in_buckets if pad_to == "bucket" else _order_at_random
            passes = _passes(frames, count, partial(order, seed=shuffle_seed), make)
            datasets["train"] = another_each_time(passes, shuffle_seed)
            datasets["passes"] = passes
        elif pad_to == "bucket":
            # From the manifest, which has them in another order than the records.
            lengths = list(manifest["splits"][name]["frames"].values())
            datasets[name] = _buckets(
                frames, lengths, batch_size, legacy_swapped_targets
            )
        else:
            datasets[name] = make(frames)
    statistics = {name: np.array(manifest["statistics"][name]) for name in STATISTICS}
    return Timit(**{"passes": datasets["train"], **datasets, **sizes, **statistics})


def _order_at_random(lengths: np.ndarray, number: Any, seed: int) -> Any:
    return order_of_pass(len(lengths), seed, number)


def _passes(
    frames: Any,
    count: int,
    order: Callable[[np.ndarray, Any], Any],
    make: Callable[[Any], Any],
) -> Callable[[Any], Any]:
    tf = require("tensorflow")
    with tf.device("CPU"):
        try:
            held = frames.ragged_batch(count).get_single_element()
        except tf.errors.DataLossError as error:
            raise ValueError(
                "A shard is damaged: create the records again with "
                f"`keras-ortho-data`. Received: {error.message}"
            ) from error
        lengths = held.row_lengths().numpy()

    def one_pass(number: Any) -> Any:
        indices = tf.data.Dataset.from_tensor_slices(order(lengths, number))
        return make(indices.map(lambda index: held[index]))

    return one_pass


def _example(frames: Any, swapped: bool) -> tuple[Any, Any, Any]:
    tf = require("tensorflow")
    silence = tf.fill([1, NUM_BINS], SILENCE_DB)
    following = tf.concat([frames[1:], silence], axis=0)
    weight = tf.ones(tf.shape(frames)[:1])
    return (following, frames, weight) if swapped else (frames, following, weight)


def _batches(
    frames: Any,
    count: int,
    batch_size: int,
    longest: int | None,
    multiple: int,
    swapped: bool,
) -> Any:
    batches = frames.map(partial(_example, swapped=swapped)).padded_batch(
        batch_size, _shapes(longest), PADDING
    )
    if multiple > 1:
        batches = batches.map(partial(_lengthened, multiple=multiple))
    return made_ahead(batches, -(-count // batch_size))


def _buckets(
    frames: Any, lengths: Sequence[int], batch_size: int, swapped: bool
) -> Any:
    tf = require("tensorflow")
    boundaries = bucket_boundaries(max(lengths))
    batches = frames.map(partial(_example, swapped=swapped)).bucket_by_sequence_length(
        lambda x, y, weight: tf.shape(weight)[0],
        boundaries,
        [batch_size] * (len(boundaries) + 1),
        _shapes(None),
        PADDING,
    )
    batches = batches.map(partial(_lengthened, multiple=MULTIPLE))
    in_each = np.bincount(np.digitize(lengths, boundaries))
    return made_ahead(batches, int(np.sum(-(-in_each // batch_size))))


def _lengthened(*batch: Any, multiple: int) -> tuple[Any, ...]:
    """Pads a batch to the next multiple of a number of frames."""
    tf = require("tensorflow")
    missing = -tf.shape(batch[-1])[1] % multiple
    return tuple(
        tf.pad(
            part,
            [[0, 0], [0, missing]] + [[0, 0]] * (part.shape.rank - 2),
            constant_values=value,
        )
        for part, value in zip(batch, PADDING, strict=True)
    )


def _shapes(longest: int | None) -> tuple[list[int | None], ...]:
    return [longest, NUM_BINS], [longest, NUM_BINS], [longest]


def order_in_buckets(
    lengths: np.ndarray, number: Any, *, batch_size: int, seed: int
) -> Any:
    """Returns an order of sequences with about the same length in each batch.

    The sequences are sorted by their lengths, each increased by up to a tenth at
    random, and the resulting batches are shuffled. If the batch size does not divide
    the number of sequences, the smaller batch is the last. The random choices depend
    only on the seed and the number of the pass.
    """
    tf = require("tensorflow")
    count = len(lengths)
    drawn = tf.cast(order_of_pass(count, seed, number), tf.float32) / count
    taken = tf.cast(lengths, tf.float32) * (1 + SPREAD * drawn)
    by_length = tf.cast(tf.argsort(taken, stable=True), tf.int64)
    batches, rest = divmod(count, batch_size)
    whole, last = by_length[: count - rest], by_length[count - rest :]
    order = order_of_pass(batches, seed, number)
    mixed = tf.gather(tf.reshape(whole, (batches, batch_size)), order)
    return tf.concat([tf.reshape(mixed, (-1,)), last], axis=0)


def bucket_boundaries(longest: int) -> list[int]:
    """Returns the smallest lengths of all buckets but the first.

    The longest sequence of a bucket is at most a fifth longer than the shortest: at
    most a sixth of a batch is padding, and a twelfth if the lengths are evenly spread.
    """
    boundaries = [2]
    while boundaries[-1] < longest:
        least = boundaries[-1]
        boundaries.append(max(least + 1, int(least * (1 + WIDTH)) + 1))
    return boundaries
