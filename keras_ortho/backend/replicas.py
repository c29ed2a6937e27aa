"""Sums over the replicas of TensorFlow's distribution strategies."""

import keras
from keras import ops

from keras_ortho.backend.types import Tensor


def sum_over_replicas(value: Tensor) -> Tensor:
    """Sums a value over the replicas of TensorFlow's distribution strategy.

    JAX needs no such sum: an array that is distributed over devices is a single array,
    and its sums already include all devices.

    Args:
        value: Tensor of the same shape on each replica.

    Returns:
        The sum over all replicas, or `value` itself if there is only one, and on other
        backends.
    """
    if keras.backend.backend() != "tensorflow":
        return value
    import tensorflow as tf

    replica = tf.distribute.get_replica_context()
    if replica is None or replica.num_replicas_in_sync == 1:
        return value
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, value)


def share_among_replicas(count: Tensor) -> Tensor | float:
    """Computes the factor that corrects a replica's mean for its number of entries.

    Keras averages the means of the replicas, as if all had the same number of entries.
    If each mean is multiplied by its factor, this average is the mean over all entries.

    Args:
        count: Number of entries in the replica's mean, a scalar.

    Returns:
        `count` divided by the mean count of the replicas, or 1.0 if there is only one
        replica.
    """
    total = sum_over_replicas(count)
    if total is count:
        return 1.0
    replicas = sum_over_replicas(ops.ones_like(count))
    return ops.divide_no_nan(count * replicas, total)
