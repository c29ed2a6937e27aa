"""Sums over the replicas of TensorFlow's distribution strategies."""

from typing import Any

import keras
from keras import ops

from keras_ortho.backend.types import Tensor


def replica_count() -> int:
    """Returns the number of replicas that run this code; on JAX, arrays span all."""
    if keras.backend.backend() != "tensorflow":
        return 1
    import tensorflow as tf

    replica = tf.distribute.get_replica_context()
    return 1 if replica is None else replica.num_replicas_in_sync


def sum_over_replicas(value: Any) -> Any:
    """Sums a tensor, or each of a list, over all replicas."""
    if replica_count() == 1:
        return value
    import tensorflow as tf

    return tf.distribute.get_replica_context().all_reduce(
        tf.distribute.ReduceOp.SUM, value
    )


def share_among_replicas(count: Tensor) -> Tensor | float:
    """Returns a factor with which the mean of all means is that of all entries."""
    if replica_count() == 1:
        return 1.0
    return ops.divide_no_nan(count * replica_count(), sum_over_replicas(count))


def clip_over_replicas(optimizer: Any, gradients: list[Any]) -> list[Any]:
    """Clips the sum of the replicas' gradients, and returns equal shares of it.

    Keras's optimizers clip each replica's gradient, and nothing of these shares.
    """
    replicas = replica_count()
    clips = optimizer.clipnorm or optimizer.global_clipnorm or optimizer.clipvalue
    if not clips:
        return gradients
    # A sparse gradient, as of an `Embedding`, lists a row once for each of its uses.
    # Keras would take the norm of that list, which is not that of the gradient.
    gradients = [g if g is None else ops.convert_to_tensor(g) for g in gradients]
    if replicas == 1:
        return gradients
    scale = optimizer.loss_scale_factor or 1.0
    given = [g for g in gradients if g is not None]
    total = [ops.divide(g, scale) for g in sum_over_replicas(given)]
    clipped = iter(optimizer._clip_gradients(total))
    return [
        g if g is None else ops.multiply(next(clipped), scale / replicas)
        for g in gradients
    ]
