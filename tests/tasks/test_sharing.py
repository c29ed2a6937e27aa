"""The parts of the batches of all processes are the batches."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_ortho.tasks import adding
from keras_ortho.tasks.sharing import Share, evaluation_share, training_share

every_share = pytest.mark.parametrize(
    ("replicas", "processes"), [(2, 1), (2, 2), (4, 2), (6, 3)]
)


def task():
    sizes = {"train_size": 41, "valid_size": 29, "test_size": 24}
    return adding.load(5, batch_size=12, **sizes)


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
    data = training_share(task().passes, Share())(np.int64(1))
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
    data = getattr(task(), split)
    padded = split == "valid" and 5 % replicas != 0
    for whole, joined in batches(data, evaluation_share, replicas, processes):
        assert len(joined) == 2 + padded
        counts = joined[2] > 0 if padded else slice(None)
        for expected, found in zip(whole, joined[:2], strict=True):
            np.testing.assert_array_equal(found[counts], expected)


def test_the_loss_and_the_weighted_metrics_are_those_of_all_sequences():
    data = adding.load(5, batch_size=4, train_size=8, valid_size=11, test_size=9).valid
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.Input((5, 2)), keras.layers.Flatten(), keras.layers.Dense(1)]
    )
    model.compile("sgd", "mse", weighted_metrics=["mae"])
    expected = model.evaluate(data, return_dict=True, verbose=0)
    shared = evaluation_share(data, Share(2))
    found = model.evaluate(shared, return_dict=True, verbose=0)
    # Sums of eleven numbers of order one, in float32.
    assert found == pytest.approx(expected, rel=1e-6)


def test_weights_of_any_form():
    x = np.arange(5, dtype="float32")[:, None]
    weight = np.array([1, 2, 1, 2, 1], "int32")
    weights = {"a": weight, "b": np.stack([weight] * 3, axis=1)}
    data = tf.data.Dataset.from_tensor_slices((x, x, weights)).batch(2)
    found = [w for _, _, w in evaluation_share(data, Share(2)).as_numpy_iterator()]
    for batch, row in zip(found, [[1, 2], [1, 2], [1, 0]], strict=True):
        expected = np.array(row) * (6 / 5)  # Of six, five are real.
        np.testing.assert_allclose(batch["a"], expected, rtol=1e-6)
        np.testing.assert_allclose(batch["b"], expected[:, None] * [1, 1, 1], rtol=1e-6)
