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
