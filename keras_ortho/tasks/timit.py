"""TIMIT: predict the next frame of speech, in dB, from all frames up to it.

The task of Wisdom et al., "Full-Capacity Unitary Recurrent Neural Networks"
(NeurIPS 2016), on records that `keras-ortho-data` makes.

The mean squared error that they and their followers report divides the squared
errors of the valid steps by the number of *all* steps, padding included. Keras
computes the same from `loss="mse"` and the weights given here, as it averages
weighted losses over all steps of a batch, where every batch is padded to the longest
utterance of its split.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from keras_ortho.audio.stft import NUM_BINS, SILENCE_DB
from keras_ortho.extras import require
from keras_ortho.tasks.pipeline import another_each_time, order_of_pass
from keras_ortho.tasks.timit_records import (
    SPLITS,
    Record,
    dataset,
    read_manifest,
    utterances,
)

__all__ = ["Record", "Timit", "load", "utterances"]


@dataclass(frozen=True)
class Timit:
    """The splits of the task, and their sizes.

    Attributes:
        train: `tf.data.Dataset` of batches `(x, y, sample_weight)`, in a new order
            each epoch; None where it was not asked for, as the other splits.
        valid: As `train`, in the order of the records.
        test: As `valid`.
        passes: As for `keras_ortho.tasks.pipeline.Task`; None where `train` is.
        num_utterances: Number of utterances of each split.
        num_frames: Number of valid frames of each split.
        max_frames: Number of frames of the longest utterance of each split.
    """

    train: Any
    valid: Any
    test: Any
    passes: Any
    num_utterances: Mapping[str, int]
    num_frames: Mapping[str, int]
    max_frames: Mapping[str, int]


def load(
    folder: str | os.PathLike[str],
    *,
    batch_size: int = 28,
    splits: Sequence[str] = SPLITS,
    shuffle_seed: int | None = 0,
    pad_to: Literal["split", "batch"] = "split",
    legacy_swapped_targets: bool = False,
) -> Timit:
    """Datasets of the task, from the records in a folder.

    Of an utterance of L frames, `x` holds frames 0 .. L-1 and `y` frames 1 .. L,
    where frame L is silence: the last of the L valid targets is -50 dB throughout.
    The steps after them are -50 dB in both, with weight 0.

    Args:
        folder: What `keras-ortho-data` wrote.
        batch_size: Number of utterances in a batch; the last batch of a split may
            hold fewer.
        splits: Which of `"train"`, `"valid"` and `"test"` to make.
        shuffle_seed: Fixes the orders of `train`; None leaves the order of the
            records. All features of `train` are held in memory to be shuffled.
        pad_to: `"split"` pads every batch to the longest utterance of the split,
            as the papers do; `"batch"` to the longest of the batch, which changes
            what the mean over all steps divides by.
        legacy_swapped_targets: Whether to exchange `x` and `y`, for comparison
            only. The network then reads frame t+1 and outputs frame t, a delay of
            one step that it can learn without error. Published errors near 0.13
            dB^2 fit that task; for prediction they would mean speech that cannot
            be told from the original, which the audio scores beside them deny.

    Returns:
        The datasets, of `x` and `y` float32 `[batch, T, 129]` in dB and
        `sample_weight` float32 `[batch, T]`, and the sizes of the splits.

    Raises:
        FileNotFoundError: If the manifest or a shard that it names is missing.
        ImportError: If TensorFlow is not installed.
        ValueError: If an argument, or the folder's contents, are not as described.

    Example:
    ```python
    data = load("records")
    model.fit(data.train, validation_data=data.valid, epochs=200)
    ```
    """
    if batch_size < 1:
        raise ValueError(f"`batch_size` must be positive. Received: {batch_size}")
    if not splits or not set(splits) <= set(SPLITS):
        raise ValueError(f"`splits` must be some of {SPLITS}. Received: {splits}")
    if pad_to not in ("split", "batch"):
        raise ValueError(f"`pad_to` must be 'split' or 'batch'. Received: {pad_to!r}")
    manifest = read_manifest(folder)
    sizes: dict[str, dict[str, int]] = {
        key: {name: manifest["splits"][name][key] for name in SPLITS}
        for key in ("num_utterances", "num_frames", "max_frames")
    }
    datasets: dict[str, Any] = dict.fromkeys(SPLITS)
    for name in splits:
        frames = dataset(folder, manifest, name).map(lambda *record: record[2])
        make = partial(
            _batches,
            count=sizes["num_utterances"][name],
            batch_size=batch_size,
            longest=sizes["max_frames"][name] if pad_to == "split" else None,
            swapped=legacy_swapped_targets,
        )
        datasets[name] = make(frames)
        if name == "train" and shuffle_seed is not None:
            passes = _passes(frames, sizes["num_utterances"][name], shuffle_seed, make)
            datasets["train"] = another_each_time(passes, shuffle_seed)
            datasets["passes"] = passes
    return Timit(**{"passes": datasets["train"], **datasets}, **sizes)


def _passes(
    frames: Any, count: int, seed: int, make: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    tf = require("tensorflow")
    with tf.device("CPU"):
        held = frames.ragged_batch(count).get_single_element()

    def one_pass(number: Any) -> Any:
        order = tf.data.Dataset.from_tensor_slices(order_of_pass(count, seed, number))
        return make(order.map(lambda index: held[index]))

    return one_pass


def _batches(
    frames: Any,
    count: int,
    batch_size: int,
    longest: int | None,
    swapped: bool,
) -> Any:
    tf = require("tensorflow")

    def example(frames: Any) -> tuple[Any, Any, Any]:
        silence = tf.fill([1, NUM_BINS], SILENCE_DB)
        following = tf.concat([frames[1:], silence], axis=0)
        weight = tf.ones(tf.shape(frames)[:1])
        return (following, frames, weight) if swapped else (frames, following, weight)

    batches = frames.map(example).padded_batch(
        batch_size,
        padded_shapes=([longest, NUM_BINS], [longest, NUM_BINS], [longest]),
        padding_values=(SILENCE_DB, SILENCE_DB, 0.0),
    )
    known = tf.data.experimental.assert_cardinality(-(-count // batch_size))
    return batches.apply(known).prefetch(tf.data.AUTOTUNE)
