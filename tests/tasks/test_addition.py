import numpy as np
import pytest

from keras_ortho.tasks import addition


def texts(places):
    return ["".join(addition.CHARACTERS[i] for i in row) for row in places]


@pytest.mark.parametrize("digits", [1, 2, 3])
def test_questions_and_answers(digits):
    count = min(addition.num_questions(digits), 4000)
    questions, answers = addition.generate(count, digits, seed=0)
    assert questions.shape == (count, 2 * digits + 1)
    assert answers.shape == (count, digits + 1)
    seen = set()
    for question, answer in zip(texts(questions), texts(answers), strict=True):
        first, second = question[::-1].rstrip().split("+")
        assert len(answer) == digits + 1
        assert int(answer) == int(first) + int(second)
        assert str(int(first)) == first  # No zeros lead.
        seen.add(frozenset((int(first), int(second))))
        assert max(len(first), len(second)) <= digits
    assert len(seen) == count  # Whatever their order.


def test_numbers_of_all_lengths():
    questions, _ = addition.generate(3000, 3, seed=0)
    numbers = [n for q in texts(questions) for n in q[::-1].rstrip().split("+")]
    shares = [np.mean([len(n) == digits for n in numbers]) for digits in (1, 2, 3)]
    # A third each are drawn with so many digits; a leading zero shortens a tenth. Of
    # two that are alike one is dropped, which are mostly short ones.
    assert 0.25 < shares[2] < 0.40
    assert 0.25 < shares[1] < 0.40
    assert 0.2 < shares[0] < 0.40


def test_seeds():
    first = addition.generate(50, 3, seed=1)[0]
    np.testing.assert_array_equal(first, addition.generate(50, 3, seed=1)[0])
    assert not np.array_equal(first, addition.generate(50, 3, seed=2)[0])


def test_load():
    task = addition.load(2, batch_size=8, train_size=50, valid_size=20, test_size=20)
    parts = []
    for data in (task.train, task.valid, task.test):
        x, y = (
            np.concatenate(list(map(np.asarray, v))) for v in zip(*data, strict=True)
        )
        assert x.shape[1:] == (5, 12)
        assert y.shape[1:] == (3,)
        np.testing.assert_array_equal(x.sum(axis=2), 1)
        parts.append(texts(x.argmax(axis=2)))
        for question, answer in zip(parts[-1], texts(y), strict=True):
            assert sum(map(int, question[::-1].split("+"))) == int(answer)
    assert [len(part) for part in parts] == [50, 20, 20]
    assert len({q for part in parts for q in part}) == 90
    assert task.num_classes == 12
    answers = np.concatenate([y for _, y in task.test])
    best = [np.bincount(c).max() for c in answers.T]
    # No constant answer is better than the best for the test data themselves.
    assert 1 - np.mean(best) / 20 <= task.baseline < 1


def test_usual_sizes():
    task = addition.load(2)
    # Of 99 % of the 5 050 questions nine tenths, in batches of 32.
    assert len(task.train) == 141
    assert sum(len(y) for _, y in task.valid) == 249


@pytest.mark.parametrize(
    ("arguments", "received"),
    [
        ({"digits": 0}, "digits=0"),
        ({"digits": 10}, "digits=10"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"valid_size": 0}, "valid_size=0"),
        ({"seed": "a"}, "seed='a'"),
        ({"digits": 1, "train_size": 54}, "train_size=54, valid_size=1, test_size=1"),
    ],
)
def test_bad_arguments(arguments, received):
    small = {"train_size": 20, "valid_size": 1, "test_size": 1}
    with pytest.raises(ValueError, match=f"Received: {received}"):
        addition.load(**small | arguments)


def test_more_questions_than_there_are():
    with pytest.raises(ValueError, match=r"`num_sequences` .* num_sequences=56"):
        addition.generate(56, 1)
