import functools

import keras
import numpy as np
import pytest

from keras_ortho.tasks import adding, copying
from keras_ortho.tasks.pipeline import shuffled_batches

COUNT = 23


@pytest.fixture
def data():
    numbers = np.arange(COUNT, dtype="float32")
    return shuffled_batches(numbers, -numbers, batch_size=4, seed=3)


def order(dataset):
    x, y = (np.concatenate(part) for part in zip(*dataset, strict=True))
    np.testing.assert_array_equal(x, -y)
    return x.tolist()


def test_a_pass_has_its_order_whatever_came_before(data):
    train, passes = data
    first, second = order(passes(0)), order(passes(1))
    assert first != second
    assert sorted(first) == sorted(second) == list(range(COUNT))
    list(train)
    assert [order(passes(1)), order(passes(0))] == [second, first]
    keras.utils.set_random_seed(8)
    assert order(passes(0)) == first
    numbers = np.arange(COUNT, dtype="float32")
    _, others = shuffled_batches(numbers, -numbers, batch_size=4, seed=4)
    assert order(others(0)) not in (first, second)


def test_is_another_pass_each_time(data):
    train, passes = data
    orders = [order(train) for _ in range(3)]
    assert len({tuple(order) for order in orders}) == 3
    assert len(train) == len(passes(0)) == 6


@pytest.mark.parametrize(
    "load",
    [functools.partial(adding.load, 50), functools.partial(copying.load, 5)],
    ids=["adding", "copying"],
)
def test_no_sequence_is_in_two_parts(load):
    """Nor in those of another seed. Of equal sizes, equal seeds give equal parts."""
    seen = set()
    for seed in (0, 1):
        task = load(train_size=30, valid_size=30, test_size=30, seed=seed)
        for part in (task.train, task.valid, task.test):
            seen |= {x.numpy().tobytes() for batch, _ in part for x in batch}
    assert len(seen) == 180


def test_a_task_that_does_not_shuffle():
    task = adding.load(5, train_size=10, test_size=5, shuffle=False)
    assert task.passes is task.train
