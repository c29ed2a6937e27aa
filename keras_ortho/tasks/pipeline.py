"""Makes `tf.data` batches from arrays, in an order that a seed determines."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from keras_ortho.checks import check_count
from keras_ortho.extras import require

Arrays = tuple[np.ndarray, np.ndarray]
# Converts the inputs and targets of a batch, given the number of its pass over the
# data, an int64 tensor, or `None` if all passes are the same.
Finish = Callable[[Any, Any, Any], tuple[Any, Any]]


@dataclass(frozen=True)
class Task:
    """The data of a task.

    Attributes:
        train: `tf.data.Dataset` of training batches. If the task shuffles, each
            iteration has a different order.
        valid, test: As `train`, in one order.
        passes: `train` for `keras_ortho.training.train`. If the task shuffles, a
            function from the number of a pass, an int64 tensor, to a
            `tf.data.Dataset` in its order, which depends only on that number.
        baseline: Loss of the best answer that ignores the inputs; for addition,
            images and series, the error rate of the most frequent class in training.
        num_classes: Number of classes, or `None`, if the targets are not classes.
        controls: Other data sets to evaluate a trained network on, by description.
    """

    train: Any
    valid: Any
    test: Any
    passes: Any
    baseline: float | None = None
    num_classes: int | None = None
    controls: Mapping[str, Any] = field(default_factory=dict)


def make_task(
    train: Arrays,
    valid: Arrays,
    test: Arrays,
    baseline: float,
    num_classes: int | None = None,
    *,
    order: np.random.SeedSequence | None,
    **form: Any,
) -> Task:
    """Makes a task of inputs and targets, shuffled if there is a seed of the orders."""
    if order is None:
        in_batches = passes = batches(*train, **form)
    else:
        seed = int(order.generate_state(1)[0])
        passes = shuffled_passes(*train, seed=seed, **form)
        in_batches = another_each_time(passes, seed)
    valid, test = batches(*valid, **form), batches(*test, **form)
    return Task(in_batches, valid, test, passes, baseline, num_classes)


def make_random_task(
    generate: Callable[[int, np.random.SeedSequence], Arrays],
    sizes: tuple[int, int, int],
    *known: Any,
    shuffle: bool,
    seed: int,
    **form: Any,
) -> Task:
    """Makes a task of drawn sequences, of sizes for training, validation and test."""
    train_size, valid_size, test_size = sizes
    check_sizes(train_size=train_size, valid_size=valid_size, test_size=test_size)
    train, test, order, valid = np.random.SeedSequence(seed).spawn(4)
    return make_task(
        generate(train_size, train),
        generate(valid_size, valid),
        generate(test_size, test),
        *known,
        order=order if shuffle else None,
        **form,
    )


def check_sizes(**sizes: int) -> list[int]:
    """Checks arguments that count examples or steps."""
    return [check_count(name, size) for name, size in sizes.items()]


def constant_error(train: np.ndarray, test: np.ndarray) -> float:
    """Computes the error rate of always answering the most frequent class."""
    return float(np.mean(test != np.argmax(np.bincount(train))))


def one_hot(depth: int) -> Finish:
    """Converts integer inputs to one-hot vectors."""
    tf = require("tensorflow")
    return lambda x, y, _: (tf.one_hot(x, depth), y)


def batches(*arrays: np.ndarray, **form: Any) -> Any:
    """Makes batches of inputs and targets, in their order."""
    in_order = shuffled_passes(*arrays, **form)(None)
    return in_order.prefetch(require("tensorflow").data.AUTOTUNE)


def shuffled_passes(
    inputs: np.ndarray,
    targets: np.ndarray,
    *,
    batch_size: int,
    seed: int = 0,
    finish: Finish = lambda x, y, _: (x, y),
) -> Callable[[Any], Any]:
    """Makes batches of inputs and targets, in a different order in each pass."""
    tf = require("tensorflow")
    check_count("batch_size", batch_size)
    with tf.device("CPU"):  # Batches go to the GPU one at a time.
        inputs, targets = tf.constant(inputs), tf.constant(targets)

    def one_pass(number: Any) -> Any:
        # Gathering whole batches costs far less than stacking shuffled sequences.
        indices = order_of_pass(len(inputs), seed, number)
        return (
            tf.data.Dataset.from_tensor_slices(indices)
            .batch(batch_size)
            .map(lambda i: finish(tf.gather(inputs, i), tf.gather(targets, i), number))
        )

    return one_pass


def order_of_pass(count: int, seed: int, number: Any) -> Any:
    """Returns the order of the examples in a pass: their own if it has no number."""
    tf = require("tensorflow")
    indices = tf.range(count, dtype=tf.int64)
    if number is None:
        return indices
    # That of `Dataset.shuffle` depends on the number of iterators made, including those
    # that Keras makes only to inspect a batch.
    return tf.random.experimental.stateless_shuffle(
        indices,
        tf.stack([tf.cast(seed, tf.int64), tf.cast(number, tf.int64)]),
        # Without a named algorithm, each kind of device draws different numbers.
        alg="philox",
    )


def another_each_time(passes: Callable[[Any], Any], seed: int) -> Any:
    """Makes a data set that is a different pass in each iteration."""
    tf = require("tensorflow")
    numbers = tf.data.Dataset.random(seed, rerandomize_each_iteration=True).take(1)
    size = len(passes(tf.constant(0, tf.int64)))
    return made_ahead(numbers.flat_map(passes), size)


def made_ahead(batches: Any, size: int) -> Any:
    """Sets the number of batches of a data set, and prefetches them."""
    tf = require("tensorflow")
    known = tf.data.experimental.assert_cardinality(size)
    return batches.apply(known).prefetch(tf.data.AUTOTUNE)
