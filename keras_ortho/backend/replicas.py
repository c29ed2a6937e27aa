"""Sums over the replicas of a batch that is trained in parallel."""

import keras
from keras import ops

from keras_ortho.backend.types import Tensor


def sum_over_replicas(value: Tensor) -> Tensor:
    """Adds up a value over the replicas of TensorFlow's distribution strategy.

    On JAX an array that is distributed over devices is one array: what is computed of
    it is of all of it.

    Args:
        value: Tensor, of the same shape on each replica.

    Returns:
        The sum over all, or `value` itself where there is only one.
    """
    if keras.backend.backend() != "tensorflow":
        return value
    import tensorflow as tf

    replica = tf.distribute.get_replica_context()
    if replica is None or replica.num_replicas_in_sync == 1:
        return value
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, value)


def share_among_replicas(count: Tensor) -> Tensor | float:
    """Tells how much of what a mean is over lies on this replica.

    Keras takes the mean of the replicas' means, as if all were over as many. Each of
    them times this share has the mean over all for its mean.

    Args:
        count: What the replica's mean is over, a scalar.

    Returns:
        `count` over the mean of the counts, or 1.0 where there is only one replica.
    """
    total = sum_over_replicas(count)
    if total is count:
        return 1.0
    replicas = sum_over_replicas(ops.ones_like(count))
    return ops.divide_no_nan(count * replicas, total)
