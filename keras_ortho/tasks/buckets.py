"""Batches of sequences of about the same length."""

from typing import Any

import numpy as np

from keras_ortho.extras import require
from keras_ortho.tasks.pipeline import order_of_pass

# Largest random increase of a length for sorting, as a fraction of it.
SPREAD = 0.1
# Largest difference of the lengths in a bucket, as a fraction of the shortest; so at
# most a sixth of a batch is padding.
WIDTH = 0.2


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
