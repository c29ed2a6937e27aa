"""The adding problem: the sum of two marked numbers in a long sequence."""

import numpy as np

from keras_ortho.checks import check
from keras_ortho.tasks.pipeline import Task, check_sizes, make_random_task

# Variance of the sum of two numbers uniform on (0, 1): the loss of always answering 1.
BASELINE = 1 / 6


def generate(
    num_sequences: int, length: int, seed: int | np.random.SeedSequence = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Draws sequences of the adding problem.

    Each step has a number, uniform on [0, 1), and a marker: 1 at one step of each half,
    uniform on `0 .. floor((T - 1) / 2) - 1` and on `floor((T - 1) / 2) .. T - 1`, else
    0. The target is the sum of the marked numbers.

    Args:
        num_sequences: Number of sequences.
        length: Number of steps `T`, at least 3.
        seed: Seed, at least 0. Default: 0.

    Returns:
        The inputs, `(num_sequences, T, 2)`, and targets, `(num_sequences, 1)`, float32.

    Raises:
        ValueError: If an argument is out of range.

    Example:
    >>> x, y = generate(100_000, length=200, seed=0)

    Reference:
    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
      section 5.2, markers as in the authors' released code
    """
    num_sequences, length = check_sizes(num_sequences=num_sequences, length=length)
    check(length >= 3, "length", "be at least 3", f"length={length}")
    random = np.random.default_rng(seed)
    half = (length - 1) // 2
    first = random.integers(0, half, num_sequences)
    second = random.integers(half, length, num_sequences)
    places = np.arange(num_sequences)[:, None], np.column_stack([first, second])
    inputs = np.zeros((num_sequences, length, 2), "float32")
    inputs[:, :, 0] = random.random((num_sequences, length), "float32")
    inputs[*places, 1] = 1.0
    return inputs, inputs[*places, 0].sum(axis=1, keepdims=True)


def load(
    length: int = 200,
    *,
    batch_size: int = 50,
    train_size: int = 100_000,
    valid_size: int = 1_000,
    test_size: int = 10_000,
    shuffle: bool = True,
    seed: int = 0,
) -> Task:
    """Makes the adding problem, by default with the sizes of the papers.

    The loss is the mean squared error of the sum after the last step.

    Args:
        length: Number of steps `T`, at least 3. Default: 200.
        batch_size: Sequences in a batch. Default: 50.
        train_size: Number of training sequences. Default: 100 000.
        valid_size: Number of validation sequences. Default: 1 000.
        test_size: Number of test sequences. Default: 10 000.
        shuffle: Whether each epoch has another order, as for ENRNN. Default: `True`.
        seed: Seed of the sequences and their order. Default: 0.

    Returns:
        A `Task` of inputs `(batch, T, 2)` and targets `(batch, 1)`.

    Raises:
        ValueError: If an argument is out of range.

    Example:
    >>> task = load(length=200)
    """
    return make_random_task(
        lambda num, seed: generate(num, length, seed),
        (train_size, valid_size, test_size),
        BASELINE,
        shuffle=shuffle,
        seed=seed,
        batch_size=batch_size,
    )
