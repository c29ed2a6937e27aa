"""The adding problem: the sum of two marked numbers in a long sequence."""

import numpy as np

from keras_ortho.tasks.pipeline import Task, check_sizes, generator, make_task

# Variance of the sum of two numbers uniform on (0, 1): the loss of always answering 1.
BASELINE = 1 / 6


def generate(
    num_sequences: int, length: int, seed: int | np.random.SeedSequence = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Draws sequences of the adding problem.

    Each step has a number, uniform on [0, 1), and a marker. The marker is 1 at one
    step of each half, uniform on `0 .. floor((T - 1) / 2) - 1` and on
    `floor((T - 1) / 2) .. T - 1`, and 0 elsewhere. The target is the sum of the marked
    numbers.

    Args:
        num_sequences: Number of sequences.
        length: Number of steps `T`, at least 3.
        seed: Seed, at least 0. Default: 0.

    Returns:
        A pair of the inputs, of shape `(num_sequences, T, 2)`, and the targets,
        of shape `(num_sequences, 1)`, both float32.

    Raises:
        ValueError: If `length` is less than 3, `num_sequences` is not positive, or the
            seed is negative.

    Example:
    >>> x, y = generate(100_000, length=200, seed=0)

    Reference:

    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
      section 5.2, markers as in the authors' released code
    """
    num_sequences, length = check_sizes(num_sequences=num_sequences, length=length)
    if length < 3:
        raise ValueError(
            "`length` must be at least 3, so that each half has a step. "
            f"Received: length={length}"
        )
    random = generator(seed)
    half = (length - 1) // 2
    rows = np.arange(num_sequences)
    markers = [
        random.integers(0, half, num_sequences),
        random.integers(half, length, num_sequences),
    ]
    inputs = np.zeros((num_sequences, length, 2), "float32")
    inputs[:, :, 0] = random.random((num_sequences, length), "float32")
    for marker in markers:
        inputs[rows, marker, 1] = 1.0
    targets = sum(inputs[rows, marker, 0] for marker in markers)
    return inputs, targets[:, None]


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
        valid_size: Number of validation sequences, to choose an epoch on. The papers
            have none, and do not choose. Default: 1 000.
        test_size: Number of test sequences. Default: 10 000.
        shuffle: Whether to reorder the training sequences in each epoch. The code of
            scoRNN does not; that of ENRNN does. Default: `True`.
        seed: Seed of the sequences and their order. Default: 0.

    Returns:
        A `Task`: its `train`, `valid` and `test` yield pairs of shapes
        `(batch, T, 2)` and `(batch, 1)`.

    Raises:
        ValueError: If a size is not positive, `length` is less than 3, or the seed is
            negative.
        ImportError: If TensorFlow is not installed.

    Example:
    >>> task = load(length=200)
    """
    return make_task(
        lambda num, seed: generate(num, length, seed),
        BASELINE,
        batch_size=batch_size,
        train_size=train_size,
        valid_size=valid_size,
        test_size=test_size,
        shuffle=shuffle,
        seed=seed,
    )
