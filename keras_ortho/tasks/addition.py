"""Addition of numbers as text: from `"12+345"` to `"357"`.

This is the problem of Zaremba and Sutskever, "Learning to execute", 2014, as in Keras's
example (keras.io, "Sequence to sequence learning for performing number addition").
"""

from collections.abc import Iterable

import numpy as np

from keras_ortho.checks import check_seed
from keras_ortho.tasks.pipeline import (
    Task,
    batches,
    check_sizes,
    constant_error,
    generator,
    shuffled_batches,
)

# The characters that the integers of a text stand for; it is padded with spaces.
CHARACTERS = "0123456789+ "
# Default number of questions in all, if there are so many.
_QUESTIONS = 50_000


def num_questions(digits: int) -> int:
    """Counts the questions, those with the same two numbers in either order as one.

    Args:
        digits: Maximum number of digits of a number.

    Returns:
        The number of unordered pairs of numbers.

    Example:
    >>> num_questions(2)
    5050
    """
    numbers = 10**digits
    return numbers * (numbers + 1) // 2


def generate(
    num_sequences: int, digits: int, seed: int | np.random.SeedSequence = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Draws questions and their answers.

    A number has 1 to `digits` digits; all counts are equally likely, as are all digits,
    and leading zeros are dropped. Of questions with the same two numbers, in either
    order, only the first is kept. Questions are padded with spaces and reversed;
    answers are padded with spaces.

    Args:
        num_sequences: Number of questions, at most `num_questions(digits)`.
        digits: Maximum number of digits `D` of a number, 1 to 9.
        seed: Seed, at least 0. Default: 0.

    Returns:
        A pair of the questions, of shape `(num_sequences, 2 D + 1)`, and the answers,
        `(num_sequences, D + 1)`, both uint8 indices into `CHARACTERS`.

    Raises:
        ValueError: If a number is not a positive integer or is too large, or the seed
            is negative.

    Example:
    >>> questions, answers = generate(5_000, digits=2)
    >>> "".join(CHARACTERS[i] for i in questions[0][::-1])
    '21+56'
    """
    num_sequences, digits = check_sizes(num_sequences=num_sequences, digits=digits)
    if digits > 9:
        raise ValueError(f"`digits` must be at most 9. Received: digits={digits}")
    if num_sequences > num_questions(digits):
        raise ValueError(
            f"`num_sequences` must be at most {num_questions(digits)}, the number of "
            f"questions with {digits} digits. Received: num_sequences={num_sequences}"
        )
    pairs = _pairs(num_sequences, digits, generator(seed))
    questions = (f"{a}+{b}".ljust(2 * digits + 1)[::-1] for a, b in pairs)
    answers = (str(a + b).ljust(digits + 1) for a, b in pairs)
    return _places(questions), _places(answers)


def _pairs(count: int, digits: int, random: np.random.Generator) -> np.ndarray:
    """Draws distinct pairs of numbers, and returns them in the order drawn."""
    drawn = np.empty((0, 2), "int64")
    while True:
        powers = 10 ** random.integers(1, digits + 1, (2 * count, 2))
        drawn = np.concatenate([drawn, random.integers(0, powers)])
        _, first = np.unique(np.sort(drawn, axis=1), axis=0, return_index=True)
        drawn = drawn[np.sort(first)]
        if len(drawn) >= count:
            return drawn[:count]


def _places(texts: Iterable[str]) -> np.ndarray:
    place = {character: index for index, character in enumerate(CHARACTERS)}
    return np.array([[place[c] for c in text] for text in texts], "uint8")


def load(
    digits: int = 3,
    *,
    batch_size: int = 32,
    train_size: int | None = None,
    valid_size: int | None = None,
    test_size: int | None = None,
    seed: int = 0,
) -> Task:
    """Makes the addition problem.

    The loss is the cross-entropy of the characters of the answer. No question is in two
    data sets, not even with its numbers in the other order.

    Args:
        digits: Maximum number of digits `D` of a number. Default: 3.
        batch_size: Questions in a batch. Default: 32.
        train_size: Number of training questions. Default: `None`, nine tenths of
            50 000, or of 99 % of all questions if these are fewer.
        valid_size: Number of validation questions, to choose an epoch on. Default:
            `None`, half of the last tenth.
        test_size: Number of test questions. Default: `None`, half of the last tenth.
        seed: Seed of the questions and their order. Default: 0.

    Returns:
        A `Task`: its `train`, `valid` and `test` yield pairs of shapes
        `(batch, 2 D + 1, 12)`, one-hot, and `(batch, D + 1)`. Its baseline is the
        error rate of the most frequent character at each place.

    Raises:
        ValueError: If a size is not a positive integer, the seed is negative, or there
            are not enough questions.
        ImportError: If TensorFlow is not installed.

    Example:
    >>> task = load(digits=2)
    """
    digits, batch_size = check_sizes(digits=digits, batch_size=batch_size)
    check_seed("seed", seed)
    usual = min(_QUESTIONS, num_questions(digits) * 99 // 100)
    sizes = {
        "train_size": usual * 9 // 10 if train_size is None else train_size,
        "valid_size": usual // 20 if valid_size is None else valid_size,
        "test_size": usual // 20 if test_size is None else test_size,
    }
    check_sizes(**sizes)
    if sum(sizes.values()) > num_questions(digits):
        raise ValueError(
            "`train_size`, `valid_size` and `test_size` must be at most "
            f"{num_questions(digits)} in sum, the number of questions with {digits} "
            "digits. Received: "
            + ", ".join(f"{name}={size}" for name, size in sizes.items())
        )
    drawn, order = np.random.SeedSequence(seed).spawn(2)
    inputs, targets = generate(sum(sizes.values()), digits, drawn)
    ends = np.cumsum(list(sizes.values()))[:-1]
    train, valid, test = zip(
        np.split(inputs, ends), np.split(targets, ends), strict=True
    )
    train_batches, passes = shuffled_batches(
        *train,
        batch_size=batch_size,
        seed=int(order.generate_state(1)[0]),
        finish=_one_hot,
    )
    errors = [constant_error(a, b) for a, b in zip(train[1].T, test[1].T, strict=True)]
    return Task(
        train_batches,
        batches(*valid, batch_size=batch_size, finish=_one_hot),
        batches(*test, batch_size=batch_size, finish=_one_hot),
        passes,
        float(np.mean(errors)),
        len(CHARACTERS),
    )


def _one_hot(inputs: object, targets: object, _: object) -> tuple[object, object]:
    import tensorflow as tf

    return tf.one_hot(inputs, len(CHARACTERS)), targets
