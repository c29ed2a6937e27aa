"""The parts of the batches of all processes are the batches."""

import numpy as np
import pytest
import tensorflow as tf

from keras_ortho.tasks import adding
from keras_ortho.tasks.sharing import Share, evaluation_share, training_share

every_share = pytest.mark.parametrize(
    ("replicas", "processes"), [(2, 1), (2, 2), (4, 2), (6, 3)]
)
TASK = adding.load(5, batch_size=12, train_size=41, valid_size=29, test_size=24)


def batches(data, cut, replicas, processes):
    """Each whole batch, and the parts of all processes side by side."""
    shares = [Share(replicas, processes, index) for index in range(processes)]
    parts = zip(*(cut(data, s).as_numpy_iterator() for s in shares), strict=True)
    for whole, several in zip(data.as_numpy_iterator(), parts, strict=True):
        assert len({len(part[0]) for part in several}) == 1
        assert sum(len(part[0]) for part in several) % replicas == 0
        yield whole, [np.concatenate(of) for of in zip(*several, strict=True)]


@every_share
def test_each_pass_has_every_sequence_once_for_each_copy(replicas, processes):
    data = training_share(TASK.passes, Share())(np.int64(1))
    seen = 0
    for whole, joined in batches(data, training_share, replicas, processes):
        seen += len(whole[0])
        copies = len(joined[0]) // len(whole[0])
        for expected, found in zip(whole, joined, strict=True):
            np.testing.assert_array_equal(found, np.concatenate([expected] * copies))
        assert copies == 1 or len(whole[0]) % replicas
    assert seen == 41


@every_share
@pytest.mark.parametrize("split", ["valid", "test"])
def test_every_sequence_is_evaluated_once(split, replicas, processes):
    data = getattr(TASK, split)
    padded = split == "valid" and 5 % replicas != 0
    for whole, joined in batches(data, evaluation_share, replicas, processes):
        assert len(joined) == 2 + padded
        counts = joined[2] > 0 if padded else slice(None)
        for expected, found in zip(whole, joined[:2], strict=True):
            np.testing.assert_array_equal(found[counts], expected)


def test_weights_of_any_form():
    """Keras's mean over six rows with weights is that over the five real ones."""
    x = np.arange(5, dtype="float32")[:, None]
    weight = np.array([1, 2, 1, 2, 1], "int32")
    weights = {"a": weight, "b": np.stack([weight] * 3, axis=1)}
    data = tf.data.Dataset.from_tensor_slices((x, x, weights)).batch(2)
    found = [w for _, _, w in evaluation_share(data, Share(2)).as_numpy_iterator()]
    for batch, row in zip(found, [[1, 2], [1, 2], [1, 0]], strict=True):
        expected = np.array(row) * (6 / 5)
        np.testing.assert_allclose(batch["a"], expected, rtol=1e-6)
        np.testing.assert_allclose(batch["b"], expected[:, None] * [1, 1, 1], rtol=1e-6)
