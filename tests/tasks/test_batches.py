import keras
import numpy as np
import pytest

from keras_ortho.tasks import adding
from keras_ortho.tasks.pipeline import order_of_pass, shuffled_batches

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


def test_is_another_pass_each_time(data):
    train, passes = data
    orders = [order(train) for _ in range(3)]
    assert len({tuple(order) for order in orders}) == 3
    assert len(train) == len(passes(0)) == 6


def test_every_order_is_as_likely():
    """Counts of which example comes first: 60 of each, deviation below 7.1."""
    seeds = range(4)
    first = [order_of_pass(5, seed, n)[0] for seed in seeds for n in range(75)]
    counts = np.bincount(np.array(first), minlength=5)
    assert abs(counts - 60).max() < 4 * 7.1


def test_a_task_that_does_not_shuffle():
    task = adding.load(5, train_size=10, test_size=5, shuffle=False)
    assert task.passes is task.train
