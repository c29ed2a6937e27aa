"""Makes `tf.data` batches from arrays, in an order that a seed determines."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from keras_ortho.checks import check_count, check_seed
from keras_ortho.extras import require


@dataclass(frozen=True)
class Task:
    """The data of a task.

    Attributes:
        train: `tf.data.Dataset` of training batches. If the task shuffles, each
            iteration has a different order.
        valid: As `train`, in one order, to choose epochs and settings on.
        test: As `valid`, to report figures on.
        passes: `train` for `keras_ortho.training.train`. If the task shuffles, a
            function from the number of a pass, an int64 tensor, to a
            `tf.data.Dataset` in its order, which depends only on that number.
        baseline: Loss of the best answer that ignores the inputs. For the addition
            task and the classification of images and series, the error rate on the
            test data of always answering the most frequent class in training. Default:
            `None`, if there is no such answer.
        num_classes: Number of classes, which the targets number from 0 on. Default:
            `None`, if the targets are not classes.
        controls: Other data sets on which to evaluate a trained network, by
            description. Default: none.
    """

    train: Any
    valid: Any
    test: Any
    passes: Any
    baseline: float | None = None
    num_classes: int | None = None
    controls: Mapping[str, Any] = field(default_factory=dict)


# Converts the inputs and targets of a batch, given the number of its pass over the
# data, an int64 tensor, or `None` if all passes are the same.
Finish = Callable[[Any, Any, Any], tuple[Any, Any]]


def generator(seed: Any) -> np.random.Generator:
    """Makes the random number generator of a task."""
    if not isinstance(seed, np.random.SeedSequence):
        check_seed("seed", seed)
    return np.random.default_rng(seed)


def check_sizes(**sizes: int) -> list[int]:
    """Checks arguments that count examples or steps."""
    return [check_count(name, size) for name, size in sizes.items()]


def constant_error(train: np.ndarray, test: np.ndarray) -> float:
    """Computes the error rate of always answering the most frequent class."""
    return float(np.mean(test != np.argmax(np.bincount(train))))


def batches(
    inputs: np.ndarray,
    targets: np.ndarray,
    *,
    batch_size: int,
    finish: Finish | None = None,
) -> Any:
    """Makes batches of arrays, in their order."""
    tf = require("tensorflow")
    indices = tf.data.Dataset.range(len(inputs)).batch(batch_size)
    pick = _picker(inputs, targets, finish)
    return indices.map(lambda i: pick(i, None)).prefetch(tf.data.AUTOTUNE)


def shuffled_batches(
    inputs: np.ndarray,
    targets: np.ndarray,
    *,
    batch_size: int,
    seed: int,
    finish: Finish | None = None,
) -> tuple[Any, Callable[[Any], Any]]:
    """Makes batches of arrays, in a different order in each pass over them."""
    tf = require("tensorflow")
    pick = _picker(inputs, targets, finish)

    def one_pass(number: Any) -> Any:
        # Shuffling indices and gathering whole batches costs far less than shuffling
        # and stacking the sequences themselves.
        indices = tf.data.Dataset.from_tensor_slices(
            order_of_pass(len(inputs), seed, number)
        )
        return indices.batch(batch_size).map(lambda i: pick(i, number))

    return another_each_time(one_pass, seed), one_pass


def order_of_pass(count: int, seed: int, number: Any) -> Any:
    """Returns the order of the examples in a pass."""
    # That of `Dataset.shuffle` depends on the number of iterators made, including those
    # that Keras makes only to inspect a batch.
    tf = require("tensorflow")
    return tf.random.experimental.stateless_shuffle(
        tf.range(count, dtype=tf.int64),
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


def _picker(
    inputs: np.ndarray,
    targets: np.ndarray,
    finish: Finish | None,
) -> Callable[[Any, Any], tuple[Any, Any]]:
    tf = require("tensorflow")
    with tf.device("CPU"):  # Batches go to the GPU one at a time.
        inputs, targets = tf.constant(inputs), tf.constant(targets)

    def pick(indices: Any, number: Any) -> tuple[Any, Any]:
        x, y = tf.gather(inputs, indices), tf.gather(targets, indices)
        return (x, y) if finish is None else finish(x, y, number)

    return pick


def make_task(
    generate: Callable[[int, np.random.SeedSequence], tuple[np.ndarray, np.ndarray]],
    baseline: float,
    *,
    batch_size: int,
    train_size: int,
    valid_size: int,
    test_size: int,
    shuffle: bool,
    seed: int,
    one_hot_depth: int | None = None,
) -> Task:
    """Makes a task of random sequences."""
    sizes = {"train_size": train_size, "valid_size": valid_size, "test_size": test_size}
    check_sizes(batch_size=batch_size, **sizes)
    check_seed("seed", seed)
    train, test, order, valid = np.random.SeedSequence(seed).spawn(4)

    form: dict[str, Any] = {"batch_size": batch_size}
    if one_hot_depth is not None:
        tf = require("tensorflow")
        form["finish"] = lambda x, y, _: (tf.one_hot(x, one_hot_depth), y)
    drawn = generate(train_size, train)
    if shuffle:
        order_seed = int(order.generate_state(1)[0])
        in_batches, passes = shuffled_batches(*drawn, seed=order_seed, **form)
    else:
        in_batches = passes = batches(*drawn, **form)
    return Task(
        in_batches,
        batches(*generate(valid_size, valid), **form),
        batches(*generate(test_size, test), **form),
        passes,
        baseline,
    )
