"""The parts of the batches of all processes are the batches."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_ortho.tasks import adding, copying
from keras_ortho.tasks.sharing import Share, evaluation_share, training_share

SHARES = [(2, 1), (2, 2), (4, 2), (6, 3)]
TASKS = {
    "adding": lambda: adding.load(
        5, batch_size=12, train_size=41, valid_size=29, test_size=24
    ),
    "copying": lambda: copying.load(
        2, batch_size=12, train_size=41, valid_size=29, test_size=24
    ),
}
every_share = pytest.mark.parametrize(("replicas", "processes"), SHARES)
every_task = pytest.mark.parametrize("task", TASKS)


def parts(data, cut, replicas, processes):
    """The batches of all processes, a list of each, side by side."""
    shares = [Share(replicas, processes, index) for index in range(processes)]
    return list(zip(*(cut(data, s).as_numpy_iterator() for s in shares), strict=True))


def keys(rows):
    return [row.tobytes() for row in rows]


@every_share
@every_task
def test_each_pass_has_every_sequence_once_for_each_copy(task, replicas, processes):
    passes = TASKS[task]().passes
    fixed = not callable(passes)
    for number in map(np.int64, range(2)):
        data = passes if fixed else passes(number)
        whole = list(data.as_numpy_iterator())
        assert sum(len(x) for x, _ in whole) == 41
        cut = parts(data, training_share, replicas, processes)
        assert len(cut) == len(whole)
        for (x, y), several in zip(whole, cut, strict=True):
            sizes = {len(part[0]) for part in several}
            assert len(sizes) == 1
            assert sum(len(part[0]) for part in several) % replicas == 0
            for expected, of in ((x, 0), (y, 1)):
                found = keys(np.concatenate([part[of] for part in several]))
                copies = len(found) // len(expected)
                assert sorted(found) == sorted(keys(expected) * copies)
            if len(x) % replicas == 0:
                assert copies == 1


@every_share
@every_task
@pytest.mark.parametrize("split", ["valid", "test"])
def test_every_sequence_is_evaluated_once(task, split, replicas, processes):
    data = getattr(TASKS[task](), split)
    whole = list(data.as_numpy_iterator())
    cut = parts(data, evaluation_share, replicas, processes)
    assert len(cut) == len(whole)
    weighted = any(len(x) % replicas for x, _ in whole)
    for (x, y), several in zip(whole, cut, strict=True):
        assert len({len(part[0]) for part in several}) == 1
        assert sum(len(part[0]) for part in several) % replicas == 0
        assert all(len(part) == 2 + weighted for part in several)
        joined = [np.concatenate(of) for of in zip(*several, strict=True)]
        counts = joined[2] > 0 if weighted else np.full(len(joined[0]), True)
        assert keys(joined[0][counts]) == keys(x)
        assert keys(joined[1][counts]) == keys(y)
    assert weighted == (split == "valid" and 5 % replicas != 0)


def test_the_loss_and_the_weighted_metrics_are_those_of_all_sequences():
    data = adding.load(5, batch_size=4, train_size=8, valid_size=11, test_size=9).valid
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.Input((5, 2)), keras.layers.Flatten(), keras.layers.Dense(1)]
    )
    model.compile("sgd", "mse", weighted_metrics=["mae"])
    expected = model.evaluate(data, return_dict=True, verbose=0)
    shared = evaluation_share(data, Share(2))
    assert len(shared.element_spec) == 3
    found = model.evaluate(shared, return_dict=True, verbose=0)
    # Sums of eleven numbers of order one, in float32.
    assert found == pytest.approx(expected, rel=1e-6)


def test_one_device_has_the_data_as_they_are():
    data = tf.data.Dataset.range(8).batch(4)
    for cut in (training_share, evaluation_share):
        assert cut(data, Share(1, processes=2, process=1)) is data
    task = TASKS["adding"]()
    assert training_share(task.passes, Share()) is task.passes
    assert evaluation_share(task.test, Share()) is task.test


@pytest.mark.parametrize("form", ["integers", "of each output"])
def test_weights_of_any_form(form):
    x = np.arange(5, dtype="float32")[:, None]
    weight = np.array([1, 2, 1, 2, 1], "int32")
    if form == "of each output":
        weight = {"a": weight, "b": weight.astype("float32")}
    data = tf.data.Dataset.from_tensor_slices((x, x, weight)).batch(2)
    found = [w for _, _, w in evaluation_share(data, Share(2)).as_numpy_iterator()]
    each = tf.nest.flatten(found)
    expected = np.array([[1, 2], [1, 2], [1, 0]]) * (6 / 5)  # of six, five are real
    several = len(each) // 3
    for place in range(several):
        np.testing.assert_allclose(each[place::several], expected, rtol=1e-6)
