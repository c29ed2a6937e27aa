import numpy as np
import pytest

from keras_ortho.tasks import adding, addition, copying
from keras_ortho.tasks.pipeline import another_each_time, shuffled_passes


@pytest.mark.parametrize("length", [3, 4, 200])
def test_adding(length):
    x, y = adding.generate(4000, length)
    values, markers = x[..., 0], x[..., 1]
    assert 0 <= values.min() <= values.max() < 1
    assert set(np.unique(markers)) == {0, 1}
    assert np.all(markers.sum(axis=1) == 2)
    first, second = np.nonzero(markers)[1].reshape(-1, 2).T
    half = (length - 1) // 2
    # Both take every place of their half: 0 .. 98 and 99 .. 199 for T = 200.
    assert set(first) == set(range(half))
    assert set(second) == set(range(half, length))
    np.testing.assert_array_equal(y[:, 0], (values * markers).sum(axis=1))
    # The variance of the sum of two uniform numbers, to five standard errors.
    assert np.mean((y - 1) ** 2) == pytest.approx(adding.BASELINE, abs=5 * 0.2 / 63)


@pytest.mark.parametrize("delay", [1, 2, 30])
def test_copying(delay):
    x, y = copying.generate(3000, delay)
    symbols = x[:, :10]
    assert set(np.unique(symbols)) == set(range(1, 9))
    assert np.all(x[:, 10 : delay + 9] == 0)  # T - 1 blanks
    assert np.all(x[:, delay + 9] == 9)
    assert np.all(x[:, delay + 10 :] == 0)  # 10 blanks
    assert np.all(y[:, : delay + 10] == 0)
    np.testing.assert_array_equal(y[:, delay + 10 :], symbols)
    assert copying.baseline(1000) == pytest.approx(0.0204, abs=5e-5)


@pytest.mark.parametrize("digits", [1, 2, 3])
def test_addition(digits):
    count = min(addition.num_questions(digits), 4000)
    seen = set()
    for rows in zip(*addition.generate(count, digits), strict=True):
        question, answer = (
            "".join(addition.CHARACTERS[i] for i in row) for row in rows
        )
        first, second = question[::-1].rstrip().split("+")
        assert int(answer) == int(first) + int(second)
        assert str(int(first)) == first  # No zeros lead.
        assert max(len(first), len(second)) <= digits
        seen.add(frozenset((int(first), int(second))))
    assert len(seen) == count  # Whatever their order.


@pytest.mark.parametrize(
    ("load", "size", "shapes", "classes"),
    [
        (adding.load, 50, [(50, 2), (1,)], None),
        (copying.load, 5, [(25, 10), (25,)], 9),
        (addition.load, 3, [(7, 12), (4,)], 12),
    ],
)
def test_tasks(load, size, shapes, classes):
    options = {"batch_size": 8, "train_size": 50, "valid_size": 50, "test_size": 50}
    task, again = load(size, **options), load(size, **options)
    assert task.num_classes == classes
    seen = set()
    for each in (task, load(size, **options, seed=1)):
        for data in (each.train, each.valid, each.test):
            found = list(data)
            assert [len(x) for x, _ in found] == [8] * 6 + [2]
            x, y = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
            assert [x.shape[1:], y.shape[1:]] == shapes
            assert x.dtype == "float32"
            assert classes is None or (x.sum(axis=-1) == 1).all()  # One-hot.
            seen |= {sequence.tobytes() for sequence in x}
    # No sequence is in two parts. Of equal sizes, equal seeds would give equal parts.
    assert len(seen) > 290  # Two seeds may draw the same question.
    for one, other in zip(task.test, again.test, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
    fixed = load is copying.load  # In one order, as the papers.
    assert (task.passes is task.train) == fixed


def test_the_baseline_of_addition_is_that_of_constant_answers():
    task = addition.load(2, train_size=50, valid_size=20, test_size=20)
    answers = np.concatenate([y for _, y in task.test])
    best = [np.bincount(column).max() for column in answers.T]
    # No constant answer is better than the best for the test data themselves.
    assert 1 - np.mean(best) / 20 <= task.baseline < 1


def order(dataset):
    x, y = (np.concatenate(part) for part in zip(*dataset, strict=True))
    np.testing.assert_array_equal(x, -y)
    return x.tolist()


def test_a_pass_has_its_order_whatever_came_before():
    numbers = np.arange(23, dtype="float32")
    passes = shuffled_passes(numbers, -numbers, batch_size=4, seed=3)
    train = another_each_time(passes, seed=3)
    first, second = order(passes(0)), order(passes(1))
    assert first != second
    assert sorted(first) == sorted(second) == list(range(23))
    assert len({tuple(order(train)) for _ in range(3)}) == 3
    assert len(train) == 6
    assert [order(passes(1)), order(passes(0))] == [second, first]
    others = shuffled_passes(numbers, -numbers, batch_size=4, seed=4)
    assert order(others(0)) not in (first, second)
