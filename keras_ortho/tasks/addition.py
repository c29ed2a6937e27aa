"""Addition of numbers as text, as in Zaremba and Sutskever, "Learning to execute"."""

import numpy as np

from keras_ortho.checks import check, check_count
from keras_ortho.tasks import pipeline

# The characters that the integers of a text stand for; it is padded with spaces.
CHARACTERS = "0123456789+ "


def num_questions(digits: int) -> int:
    """Counts the questions, those with the same two numbers in either order as one.

    Args:
        digits: Maximum number of digits of a number.

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

    A number has 1 to `digits` digits, all counts and digits equally likely, and leading
    zeros are dropped. No two questions have the same numbers, in either order. Texts
    are padded with spaces; questions are then reversed.

    Args:
        num_sequences: Number of questions, at most `num_questions(digits)`.
        digits: Maximum number of digits `D` of a number, at most 18.
        seed: Seed, at least 0. Default: 0.

    Returns:
        The questions, `(num_sequences, 2 D + 1)`, and the answers,
        `(num_sequences, D + 1)`, both uint8 indices into `CHARACTERS`.

    Raises:
        ValueError: If an argument is out of range.

    Example:
    >>> questions, answers = generate(5_000, digits=2)
    >>> "".join(CHARACTERS[i] for i in questions[0][::-1])
    '21+56'
    """
    most = num_questions(check_count("digits", digits))
    num_sequences = check_count("num_sequences", num_sequences)
    wanted = f"be at most {most}, the number of questions with {digits} digits"
    check(num_sequences <= most, "num_sequences", wanted, num_sequences)
    random = np.random.default_rng(seed)
    pairs = np.empty((0, 2), int)
    while len(pairs) < num_sequences:
        powers = 10 ** random.integers(1, digits + 1, (2 * num_sequences, 2))
        pairs = np.concatenate([pairs, random.integers(0, powers)])
        _, first = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)
        pairs = pairs[np.sort(first)]
    pairs = pairs[:num_sequences]
    questions = [f"{a}+{b}".ljust(2 * digits + 1)[::-1] for a, b in pairs]
    answers = [str(a + b).ljust(digits + 1) for a, b in pairs]

    def places(texts: list[str]) -> np.ndarray:
        return np.array([[CHARACTERS.index(c) for c in t] for t in texts], "uint8")

    return places(questions), places(answers)


def load(
    digits: int = 3,
    *,
    batch_size: int = 32,
    train_size: int | None = None,
    valid_size: int | None = None,
    test_size: int | None = None,
    seed: int = 0,
) -> pipeline.Task:
    """Makes the addition problem, without the same two numbers in two data sets.

    The loss is the cross-entropy of the characters of the answer.

    Args:
        digits: Maximum number of digits `D` of a number. Default: 3.
        batch_size: Questions in a batch. Default: 32.
        train_size: Number of training questions. Default: `None`, nine tenths of
            50 000, or of 99 % of all questions if these are fewer.
        valid_size: Number of validation questions. Default: `None`, a twentieth.
        test_size: Number of test questions. Default: `None`, a twentieth.
        seed: Seed of the questions and their order. Default: 0.

    Returns:
        A `Task` of one-hot float32 inputs `(batch, 2 D + 1, 12)` and integer targets
        `(batch, D + 1)`.

    Raises:
        ValueError: If an argument is out of range, or there are not enough questions.

    Example:
    >>> task = load(digits=2)
    """
    usual = min(50_000, num_questions(check_count("digits", digits)) * 99 // 100)
    sizes = pipeline.check_sizes(
        train_size=usual * 9 // 10 if train_size is None else train_size,
        valid_size=usual // 20 if valid_size is None else valid_size,
        test_size=usual // 20 if test_size is None else test_size,
    )
    drawn, order = np.random.SeedSequence(seed).spawn(2)
    ends = np.cumsum(sizes)[:-1]
    parts = (np.split(array, ends) for array in generate(sum(sizes), digits, drawn))
    train, valid, test = zip(*parts, strict=True)
    errors = [*map(pipeline.constant_error, train[1].T, test[1].T)]
    depth = len(CHARACTERS)
    known = float(np.mean(errors)), depth
    finish = pipeline.one_hot(depth)
    return pipeline.make_task(
        train, valid, test, *known, order=order, batch_size=batch_size, finish=finish
    )
