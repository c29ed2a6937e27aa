"""Divides batches among the devices that train a network together."""

import math
from typing import Any, NamedTuple

from keras_ortho.checks import check
from keras_ortho.extras import require


class Share(NamedTuple):
    """The part of each batch that a process makes.

    Attributes:
        replicas: Number of devices of all processes, with equal parts of a batch.
        processes: Number of processes, with equal numbers of replicas.
        process: Index of this process, from 0 on.
    """

    replicas: int = 1
    processes: int = 1
    process: int = 0


def training_share(data: Any, share: Share) -> Any:
    """Takes the part of a process from each training batch.

    A batch that the replicas do not divide evenly is repeated as often as needed: its
    mean, its gradient and its statistics stay the same.

    Args:
        data: `tf.data.Dataset` of batches, the same in each process; or a function
            from the number of a pass to it, as `passes` of a `Task`.
        share: The part to take.

    Returns:
        The same with the parts of the batches.

    Raises:
        ValueError: If there is no such part.

    Example:
    >>> import tensorflow as tf
    >>> data = tf.data.Dataset.range(7).batch(4)
    >>> part = training_share(data, Share(2, processes=2, process=1))
    >>> [batch.tolist() for batch in part.as_numpy_iterator()]
    [[2, 3], [4, 5, 6]]
    """
    if _is_whole(share):
        return data
    if callable(data):
        return lambda number: training_share(data(number), share)
    tf = require("tensorflow")
    replicas = share.replicas
    copies = tf.constant([replicas // math.gcd(n, replicas) for n in range(replicas)])

    def divide(*batch: Any) -> Any:
        rows = _rows(batch)
        part = _part_of(rows * copies[rows % replicas], share)
        taken = _take(batch, part % rows)
        return taken if len(taken) > 1 else taken[0]

    return data.map(divide).prefetch(tf.data.AUTOTUNE)


def evaluation_share(data: Any, share: Share) -> Any:
    """Takes the part of a process from each evaluation batch.

    A batch that the replicas do not divide evenly is padded with examples of weight
    zero, so that Keras's losses and the means of `weighted_metrics` stay the same.

    Args:
        data: Finite `tf.data.Dataset` of `(x, y)` or `(x, y, sample_weight)`, the same
            in each process.
        share: The part to take.

    Returns:
        The same with the parts of the batches, and with weights if any is padded.

    Raises:
        ValueError: If there is no such part, or the data set is infinite.

    Example:
    >>> import tensorflow as tf
    >>> data = tf.data.Dataset.from_tensor_slices(([3.0, 5.0, 7.0], [0, 1, 2])).batch(2)
    >>> part = evaluation_share(data, Share(2, processes=2, process=1))
    >>> x, y, weight = list(part.as_numpy_iterator())[-1]
    >>> x.tolist(), y.tolist(), weight.tolist()
    ([7.0], [2], [0.0])
    """
    if _is_whole(share):
        return data
    tf = require("tensorflow")
    finite = data.cardinality() != tf.data.INFINITE_CARDINALITY
    check(finite, "data", "be finite", "an infinite data set")
    rows = [int(count) for count in data.map(lambda *b: _rows(b)).as_numpy_iterator()]
    scale = sum(-(-n // share.replicas) * share.replicas for n in rows) / sum(rows)

    def divide(*batch: Any) -> Any:
        count = _rows(batch)
        part = _part_of(-(-count // share.replicas) * share.replicas, share)
        x, y, *weight = _take(batch, tf.minimum(part, count - 1))
        if scale == 1:
            return x, y, *weight
        own = tf.where(part < count, scale, 0.0)
        if not weight:
            return x, y, own

        def weighed(given: Any) -> Any:
            ones = [1] * (len(given.shape) - 1)
            return tf.cast(given, own.dtype) * tf.reshape(own, [-1, *ones])

        return x, y, tf.nest.map_structure(weighed, weight[0])

    return data.map(divide).prefetch(tf.data.AUTOTUNE)


def _is_whole(share: Share) -> bool:
    whole = share.replicas == 1
    wanted = "be 1, for whole batches, or a multiple of `processes`"
    check(whole or share.replicas % share.processes == 0, "replicas", wanted, share)
    return whole


def _rows(batch: Any) -> Any:
    tf = require("tensorflow")
    return tf.shape(tf.nest.flatten(batch)[0])[0]


def _part_of(rows: Any, share: Share) -> Any:
    """Returns the indices of the rows of a process."""
    each = rows // share.processes
    return share.process * each + require("tensorflow").range(each)


def _take(batch: Any, index: Any) -> Any:
    tf = require("tensorflow")
    return tf.nest.map_structure(lambda x: tf.gather(x, index), batch)
