"""From arrays to `tf.data`: batches in an order that a seed fixes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_ortho.extras import require


@dataclass(frozen=True)
class Task:
    """The data of a task.

    Attributes:
        train: `tf.data.Dataset` of batches to train on.
        valid: As `train`, to choose epochs and settings on.
        test: As `train`, to report the figures of.
        baseline: Loss of the best answer that remembers nothing; `None` where there
            is no such answer.
        num_classes: Number of classes that the targets number from 0 on; `None`
            where they are no classes.
    """

    train: Any
    valid: Any
    test: Any
    baseline: float | None = None
    num_classes: int | None = None


def check_sizes(**sizes: int) -> None:
    """Checks arguments that count examples or steps.

    Args:
        **sizes: The arguments by name.

    Raises:
        ValueError: If one is not a positive integer.
    """
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(
                f"`{name}` must be a positive integer. Received: {name}={size!r}"
            )


def batches(
    inputs: np.ndarray,
    targets: np.ndarray,
    *,
    batch_size: int,
    shuffle_seed: int | None = None,
    one_hot_depth: int | None = None,
) -> Any:
    """Makes batches of arrays.

    Args:
        inputs: Array of shape `(examples, ...)`.
        targets: Array of shape `(examples, ...)`.
        batch_size: Examples in a batch; the last one may be smaller.
        shuffle_seed: Seed of the order, which then changes from epoch to epoch.
            Default: `None`, in the order given.
        one_hot_depth: Number of classes where the inputs are integers to make
            one-hot, which as integers take a fraction of the memory. Default:
            `None`, inputs as they are.

    Returns:
        A `tf.data.Dataset` of pairs.

    Raises:
        ImportError: If TensorFlow, which holds `tf.data`, is not installed.
    """
    tf = require("tensorflow")
    with tf.device("CPU"):  # A batch at a time goes to the GPU, not all of them.
        inputs, targets = tf.constant(inputs), tf.constant(targets)

    def pick(indices: Any) -> tuple[Any, Any]:
        x, y = tf.gather(inputs, indices), tf.gather(targets, indices)
        return (x if one_hot_depth is None else tf.one_hot(x, one_hot_depth)), y

    # Shuffling numbers and picking whole batches costs far less than shuffling
    # and stacking the sequences themselves.
    indices = tf.data.Dataset.range(len(inputs))
    if shuffle_seed is not None:
        indices = indices.shuffle(len(inputs), seed=shuffle_seed)
    return indices.batch(batch_size).map(pick).prefetch(tf.data.AUTOTUNE)


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
    """Makes a task of sequences that are drawn.

    Args:
        generate: Draws a number of sequences from a seed: their inputs and targets.
        baseline: Loss of the best answer that remembers nothing.
        batch_size: Sequences in a batch.
        train_size: Number of training sequences.
        valid_size: Number of sequences to choose an epoch on.
        test_size: Number of test sequences.
        shuffle: Whether to change the order of the training sequences from epoch to
            epoch.
        seed: Seed of the sequences and their order.
        one_hot_depth: As for `batches`. Default: `None`.

    Returns:
        The task.

    Raises:
        ValueError: If a size is not a positive integer.
        ImportError: If TensorFlow is not installed.
    """
    sizes = {"train_size": train_size, "valid_size": valid_size, "test_size": test_size}
    check_sizes(batch_size=batch_size, **sizes)
    train, test, order, valid = np.random.SeedSequence(seed).spawn(4)

    def draw(
        size: int, seed: np.random.SeedSequence, shuffle_seed: int | None = None
    ) -> Any:
        return batches(
            *generate(size, seed),
            batch_size=batch_size,
            shuffle_seed=shuffle_seed,
            one_hot_depth=one_hot_depth,
        )

    return Task(
        draw(train_size, train, int(order.generate_state(1)[0]) if shuffle else None),
        draw(valid_size, valid),
        draw(test_size, test),
        baseline,
    )
