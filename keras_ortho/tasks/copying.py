"""The copying problem: repeat ten symbols after a long pause."""

import math

import numpy as np

from keras_ortho.tasks.pipeline import Task, check_sizes, make_random_task, one_hot

NUM_SYMBOLS = 10  # to remember
ALPHABET = 8  # symbols 1 .. 8
BLANK, MARKER = 0, 9
INPUT_DEPTH = 10  # one-hot: blank, symbols, marker
NUM_CLASSES = 9  # blank, symbols


def baseline(delay: int) -> float:
    """Computes the cross-entropy of blanks, then symbols at random.

    Args:
        delay: Number of steps `T` between the symbols and their recall.

    Returns:
        `10 log(8) / (T + 20)`, in nats, the mean over all steps.

    Example:
    >>> round(baseline(1000), 4)
    0.0204
    """
    return NUM_SYMBOLS * math.log(ALPHABET) / (delay + 2 * NUM_SYMBOLS)


def generate(
    num_sequences: int, delay: int, seed: int | np.random.SeedSequence = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Draws sequences of the copying problem.

    The input has 10 symbols, uniform on 1 .. 8, `T - 1` blanks, a marker, and 10
    blanks; the target has `T + 10` blanks and the symbols.

    Args:
        num_sequences: Number of sequences.
        delay: Number of steps `T`, at least 1.
        seed: Seed, at least 0. Default: 0.

    Returns:
        The inputs and the targets, both uint8 `(num_sequences, T + 20)`.

    Raises:
        ValueError: If an argument is out of range.

    Example:
    >>> x, y = generate(20_000, delay=1000, seed=0)

    Reference:
    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
      section 5.1, layout as in the authors' released code
    """
    num_sequences, delay = check_sizes(num_sequences=num_sequences, delay=delay)
    random = np.random.default_rng(seed)
    symbols = random.integers(1, ALPHABET + 1, (num_sequences, NUM_SYMBOLS), "uint8")
    inputs = np.full((num_sequences, delay + 2 * NUM_SYMBOLS), BLANK, "uint8")
    inputs[:, :NUM_SYMBOLS] = symbols
    inputs[:, delay + NUM_SYMBOLS - 1] = MARKER
    targets = np.full_like(inputs, BLANK)
    targets[:, -NUM_SYMBOLS:] = symbols
    return inputs, targets


def load(
    delay: int = 1000,
    *,
    batch_size: int = 20,
    train_size: int = 20_000,
    valid_size: int = 1_000,
    test_size: int = 1_000,
    shuffle: bool = False,
    seed: int = 0,
) -> Task:
    """Makes the copying problem, by default with the sizes of the papers.

    The loss is the cross-entropy of 9 classes, averaged over all steps.

    Args:
        delay: Number of steps `T` between symbols and recall. Default: 1000.
        batch_size: Sequences in a batch. Default: 20.
        train_size: Number of training sequences. Default: 20 000.
        valid_size: Number of validation sequences. Default: 1 000.
        test_size: Number of test sequences. Default: 1 000.
        shuffle: Whether each epoch has another order. Default: `False`, as in papers.
        seed: Seed of the sequences and their order. Default: 0.

    Returns:
        A `Task` of one-hot float32 inputs `(batch, T + 20, 10)` and integer targets
        `(batch, T + 20)`.

    Raises:
        ValueError: If an argument is out of range.

    Example:
    >>> task = load(delay=1000)
    """
    return make_random_task(
        lambda num, seed: generate(num, delay, seed),
        (train_size, valid_size, test_size),
        baseline(delay),
        NUM_CLASSES,
        shuffle=shuffle,
        seed=seed,
        batch_size=batch_size,
        finish=one_hot(INPUT_DEPTH),
    )
