import numpy as np
import pytest

from keras_ortho.tasks import copying


@pytest.mark.parametrize("delay", [1, 2, 30])
def test_layout(delay):
    x, y = copying.generate(3000, delay, seed=0)
    assert x.shape == y.shape == (3000, delay + 20)
    symbols = x[:, :10]
    assert set(np.unique(symbols)) == set(range(1, 9))
    assert np.all(x[:, 10 : delay + 9] == 0)  # T - 1 blanks
    assert np.all(x[:, delay + 9] == 9)
    assert np.all(x[:, delay + 10 :] == 0)  # 10 blanks
    assert np.all(y[:, : delay + 10] == 0)
    np.testing.assert_array_equal(y[:, delay + 10 :], symbols)


def test_baseline():
    assert copying.baseline(1000) == pytest.approx(0.0204, abs=5e-5)
    assert copying.baseline(2000) == pytest.approx(10 * np.log(8) / 2020)


def test_load():
    task = copying.load(5, batch_size=4, train_size=10, test_size=6, seed=0)
    x, y = next(iter(task.train))
    assert x.shape == (4, 25, 10)
    assert x.dtype == "float32"
    np.testing.assert_array_equal(np.sum(x, axis=-1), 1)
    numbers = np.argmax(x, axis=-1)
    np.testing.assert_array_equal(numbers[:, :10], y[:, -10:])
    assert np.all(numbers[:, 14] == copying.MARKER)
    assert task.baseline == copying.baseline(5)
    assert task.num_classes == 9
    # Cycled in one order, as the papers did, unless asked otherwise.
    orders = [[y.numpy() for _, y in task.train] for _ in range(2)]
    np.testing.assert_array_equal(np.concatenate(orders[0]), np.concatenate(orders[1]))
    assert [len(y) for y in orders[0]] == [4, 4, 2]
    assert sum(len(y) for _, y in task.test) == 6


def test_numbers_of_numpy_do_not_overflow():
    found = copying.generate(np.int8(3), np.uint8(250))
    for array, expected in zip(found, copying.generate(3, 250), strict=True):
        np.testing.assert_array_equal(array, expected)
    task = copying.load(np.uint8(250), train_size=10, test_size=10)
    assert task.baseline == copying.baseline(250)
