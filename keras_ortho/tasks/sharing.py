"""Divides batches among the devices that train a network together."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from keras_ortho.checks import check_count, is_integer
from keras_ortho.extras import require


class Share(NamedTuple):
    """The part of each batch that a process makes.

    Attributes:
        replicas: Number of devices, in all processes together, that each get an equal
            part of a batch.
        processes: Number of processes. Each has the same number of replicas.
        process: Index of this process, from 0 on.
    """

    replicas: int = 1
    processes: int = 1
    process: int = 0


def training_share(data: Any, share: Share) -> Any:
    """Takes the part of a process from each training batch.

    Every process makes whole batches and keeps its part, so the data do not depend on
    the number of processes. If the number of replicas does not divide the size of a
    batch, such as the last of a pass, the batch is repeated as often as needed. Each of
    its examples then counts equally often, so that its mean, its gradient and its
    statistics stay the same.

    Args:
        data: `tf.data.Dataset` of batches, the same in each process; or a function
            from the number of a pass to such a data set, as `passes` of the tasks.
        share: The part to take.

    Returns:
        The same with the parts of the batches.

    Raises:
        ImportError: If TensorFlow, which provides `tf.data`, is not installed.
        ValueError: If there is no such part.

    Example:
    >>> import tensorflow as tf
    >>> data = tf.data.Dataset.range(7).batch(4)
    >>> part = training_share(data, Share(2, processes=2, process=1))
    >>> [batch.tolist() for batch in part.as_numpy_iterator()]
    [[2, 3], [4, 5, 6]]
    """
    _check(share)
    if share.replicas == 1:
        return data
    if callable(data):
        return lambda number: training_share(data(number), share)
    tf = require("tensorflow")
    times = tf.constant(
        [
            share.replicas // math.gcd(rest, share.replicas)
            for rest in range(share.replicas)
        ]
    )

    def divide(*batch: Any) -> Any:
        rows = _rows(batch)
        copies = times[rows % share.replicas]
        part = _part_of(rows * copies, share)
        index = tf.range(rows * copies)[part] % rows
        return _structure(batch, lambda x: tf.gather(x, index))

    return data.map(divide).prefetch(tf.data.AUTOTUNE)


def evaluation_share(data: Any, share: Share) -> Any:
    """Takes the part of a process from each evaluation batch.

    If the number of replicas does not divide the size of a batch, the batch is padded
    with copies of its last example, of weight zero. All other examples of the data then
    have the same weight: the number of examples including the copies, divided by the
    number without them. A loss that divides the sum over a batch by its size, as
    Keras's losses do, is then the mean over all examples. Metrics must be
    `weighted_metrics`. A loss that divides by the sum of its weights counts a padded
    batch like a full one.

    Args:
        data: `tf.data.Dataset` of batches `(x, y)` or `(x, y, sample_weight)`, the same
            in each process.
        share: The part to take.

    Returns:
        The same with the parts of the batches, and with weights if any is padded.

    Raises:
        ImportError: If TensorFlow is not installed.
        ValueError: If there is no such part, the batches are not such tuples, or the
            data set is infinite.

    Example:
    >>> import tensorflow as tf
    >>> data = tf.data.Dataset.from_tensor_slices(([3.0, 5.0, 7.0], [0, 1, 2])).batch(2)
    >>> part = evaluation_share(data, Share(2, processes=2, process=1))
    >>> x, y, weight = list(part.as_numpy_iterator())[-1]
    >>> x.tolist(), y.tolist(), weight.tolist()
    ([7.0], [2], [0.0])
    """
    _check(share)
    if share.replicas == 1:
        return data
    tf = require("tensorflow")
    spec = data.element_spec
    if not isinstance(spec, tuple) or len(spec) not in (2, 3):
        raise ValueError(
            "The batches of `data` must be (x, y) or (x, y, sample_weight). Received: "
            f"batches of {spec}"
        )
    if data.cardinality() == tf.data.INFINITE_CARDINALITY:
        raise ValueError(
            "`data` must be finite. Received: a data set of infinite cardinality"
        )
    rows = [int(count) for count in data.map(lambda *b: _rows(b)).as_numpy_iterator()]
    filled = sum(-(-count // share.replicas) * share.replicas for count in rows)

    def divide(*batch: Any) -> Any:
        count = _rows(batch)
        whole = -(-count // share.replicas) * share.replicas
        wanted = tf.range(whole)[_part_of(whole, share)]
        index = tf.minimum(wanted, count - 1)
        part = _structure(batch, lambda x: tf.gather(x, index))
        if filled == sum(rows):
            return part
        x, y, *weight = part
        own = tf.where(wanted < count, filled / sum(rows), 0.0)
        if not weight:
            return x, y, own
        return x, y, tf.nest.map_structure(partial(_weighed, own=own), weight[0])

    return data.map(divide).prefetch(tf.data.AUTOTUNE)


def _check(share: Share) -> None:
    replicas = check_count("replicas", share.replicas)
    processes = check_count("processes", share.processes)
    if replicas > 1 and replicas % processes:
        raise ValueError(
            "`replicas`, counted over all processes, must be 1, for whole batches, or "
            f"a multiple of `processes`. Received: {share}"
        )
    if not is_integer(share.process) or not 0 <= share.process < processes:
        raise ValueError(
            f"`process` must be a whole number from 0 to {processes - 1}. "
            f"Received: {share}"
        )


def _weighed(given: Any, own: Any) -> Any:
    """Multiplies sample weights, as floats, by a weight for each example."""
    tf = require("tensorflow")
    given = given if given.dtype.is_floating else tf.cast(given, own.dtype)
    shape = tf.concat([tf.shape(own), tf.ones(tf.rank(given) - 1, tf.int32)], 0)
    return given * tf.cast(tf.reshape(own, shape), given.dtype)


def _rows(batch: Any) -> Any:
    tf = require("tensorflow")
    return tf.shape(tf.nest.flatten(batch)[0])[0]


def _part_of(rows: Any, share: Share) -> slice:
    each = rows // share.processes
    return slice(share.process * each, (share.process + 1) * each)


def _structure(batch: tuple[Any, ...], function: Callable[[Any], Any]) -> Any:
    tf = require("tensorflow")
    mapped = tf.nest.map_structure(function, batch)
    return mapped if len(mapped) > 1 else mapped[0]
