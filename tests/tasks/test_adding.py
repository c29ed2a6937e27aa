import numpy as np
import pytest

from keras_ortho.tasks import adding


@pytest.mark.parametrize("length", [3, 4, 199, 200])
def test_sequences(length):
    x, y = adding.generate(4000, length, seed=0)
    assert x.shape == (4000, length, 2)
    assert y.shape == (4000, 1)
    assert x.dtype == y.dtype == "float32"
    values, markers = x[..., 0], x[..., 1]
    assert values.min() >= 0
    assert values.max() < 1
    assert set(np.unique(markers)) == {0, 1}
    assert np.all(markers.sum(axis=1) == 2)
    _, steps = np.nonzero(markers)
    first, second = steps.reshape(-1, 2).T
    half = (length - 1) // 2
    # Both take every place of their half: 0 .. 98 and 99 .. 199 for T = 200.
    assert set(first) == set(range(half))
    assert set(second) == set(range(half, length))
    np.testing.assert_array_equal(y[:, 0], (values * markers).sum(axis=1))


def test_sizes_may_be_numpys():
    inputs, _ = adding.generate(np.int64(3), np.int32(5), seed=0)
    assert inputs.shape == (3, 5, 2)


def test_baseline():
    _, y = adding.generate(100_000, 3, seed=0)
    # The variance of the sum of two uniform numbers, to five standard errors.
    assert np.mean((y - 1) ** 2) == pytest.approx(adding.BASELINE, abs=5 * 0.2 / 316)
    assert pytest.approx(0.167, abs=5e-4) == adding.BASELINE


def test_load():
    task = adding.load(20, batch_size=8, train_size=50, test_size=20, seed=0)
    batches = list(task.train)
    assert [len(x) for x, _ in batches] == [8] * 6 + [2]
    x, y = batches[0]
    assert x.shape == (8, 20, 2)
    assert y.shape == (8, 1)
    first, second = (np.concatenate([y for _, y in task.train]) for _ in range(2))
    assert not np.array_equal(first, second)  # another order in each epoch
    np.testing.assert_array_equal(np.sort(first, axis=0), np.sort(second, axis=0))
    test = np.concatenate([y for _, y in task.test])
    np.testing.assert_array_equal(test, np.concatenate([y for _, y in task.test]))
    assert not np.isin(test, first).any()
    again = adding.load(20, batch_size=8, train_size=50, test_size=20, seed=0)
    np.testing.assert_array_equal(next(iter(again.train))[0], x)
