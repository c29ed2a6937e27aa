"""Batches of sequences of about the same length."""

from typing import Any

import numpy as np

from keras_ortho.extras import require
from keras_ortho.tasks.pipeline import order_of_pass

# Largest random increase of a length for sorting, as a fraction of it.
SPREAD = 0.1
# Largest difference of the lengths in a bucket, as a fraction of the shortest.
WIDTH = 0.2


def order_in_buckets(
    lengths: np.ndarray, number: Any, *, batch_size: int, seed: int
) -> Any:
    """Returns an order of sequences with about the same length in each batch.

    The sequences are sorted by their lengths, each increased by up to a tenth at
    random, and the resulting batches are shuffled. If the batch size does not divide
    the number of sequences, the smaller batch is the last.

    Args:
        lengths: The length of each sequence, of shape `(count,)`.
        number: Number of the pass. The random choices depend only on it and the seed.
        batch_size: Sequences in a batch.
        seed: Seed of all orders.

    Returns:
        An int64 tensor of shape `(count,)`, a permutation.

    Raises:
        ImportError: If TensorFlow is not installed.

    Example:
    >>> order = order_in_buckets(np.array([9, 2, 8, 1]), 0, batch_size=2, seed=0)
    >>> sorted(sorted(batch) for batch in order.numpy().reshape(2, 2).tolist())
    [[0, 2], [1, 3]]
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

    Args:
        longest: Length of the longest sequence.

    Example:
    >>> bucket_boundaries(40)[-4:]
    [26, 32, 39, 47]
    """
    boundaries = [2]
    while boundaries[-1] < longest:
        least = boundaries[-1]
        boundaries.append(max(least + 1, int(least * (1 + WIDTH)) + 1))
    return boundaries
