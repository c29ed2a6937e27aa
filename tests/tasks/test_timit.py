import itertools

import keras
import numpy as np
import pytest

from experiments.speech import inputs
from keras_ortho.data_prep.pipeline import prepare
from keras_ortho.tasks.timit import (
    bucket_boundaries,
    load,
    order_in_buckets,
    utterances,
)
from keras_ortho.tasks.timit_records import SPLITS, fingerprint, read_manifest
from tests.data_prep.corpora import write_corpus

SPEAKERS = tuple(f"{sex}{letter * 3}0" for sex in "fm" for letter in "abcdef")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("timit")
    write_corpus(path / "corpus", SPEAKERS, ("sx1", "sx2", "sx3"))
    prepare(path / "corpus", path / "records", mode="speakers")
    return path / "records"


def rows(dataset):
    """The batches' rows of x, y and weight, those of each batch as wide as it."""
    return [
        row for batch in dataset.as_numpy_iterator() for row in zip(*batch, strict=True)
    ]


def frames_of(x, weight):
    return x[: int(weight.sum())]


def test_layout(folder):
    data = load(folder, batch_size=5)
    manifest = read_manifest(folder)
    for name in SPLITS:
        records = list(utterances(folder, name))
        longest = max(len(r.log_power) for r in records)
        assert data.num_utterances[name] == len(records)
        assert data.num_frames[name] == sum(len(r.log_power) for r in records)
        assert data.max_frames[name] == longest
        assert data.max_frames[name] == manifest["splits"][name]["max_frames"]
    for name in ("valid", "test"):
        records = list(utterances(folder, name))
        found = rows(getattr(data, name))
        assert len(found) == len(records)
        for (x, y, weight), record in zip(found, records, strict=True):
            count = len(record.log_power)
            assert x.shape == y.shape == (data.max_frames[name], 129)
            assert x.dtype == y.dtype == weight.dtype == np.float32
            np.testing.assert_array_equal(weight, np.arange(len(weight)) < count)
            np.testing.assert_array_equal(x[:count], record.log_power)
            np.testing.assert_array_equal(y[: count - 1], record.log_power[1:])
            assert (x[count:] == -50).all()
            assert (y[count - 1 :] == -50).all()


def test_a_pass_has_its_order_whatever_came_before(folder):
    def order(dataset):
        return [row[0].sum() for row in rows(dataset)]

    data = load(folder, splits=["train"], shuffle_seed=7)
    first, second = order(data.passes(0)), order(data.passes(1))
    assert first != second
    assert sorted(first) == sorted(second) == sorted(order(data.train))
    again = load(folder, splits=["train"], shuffle_seed=7)
    assert [order(again.passes(1)), order(again.passes(0))] == [second, first]
    assert order(load(folder, shuffle_seed=8).passes(0)) != first
    plain = load(folder, shuffle_seed=None)
    assert plain.passes is plain.train
    records = utterances(folder, "train")
    for (x, _, w), record in zip(rows(plain.train), records, strict=True):
        np.testing.assert_array_equal(frames_of(x, w), record.log_power)
    assert load(folder, splits=["valid"]).passes is None


def test_pad_to_batch(folder):
    whole = load(folder, batch_size=2, splits=["valid"]).valid
    tight = load(folder, batch_size=2, splits=["valid"], pad_to="batch").valid
    widths = []
    for wide, narrow in zip(
        whole.as_numpy_iterator(), tight.as_numpy_iterator(), strict=True
    ):
        width = narrow[0].shape[1]
        widths.append(width)
        assert width == narrow[2].sum(axis=1).max()
        for a, b in zip(wide, narrow, strict=True):
            np.testing.assert_array_equal(a[:, :width], b)
        assert not wide[2][:, width:].any()
    assert len(set(widths)) > 1


def by_frames(found):
    """Rows of x, y and weight without their padding, by what they hold."""
    return {
        frames_of(x, weight).tobytes(): frames_of(y, weight) for x, y, weight in found
    }


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("split", SPLITS)
def test_buckets_hold_each_utterance_once(folder, split, swapped):
    options = {"batch_size": 3, "splits": [split], "legacy_swapped_targets": swapped}
    whole = rows(getattr(load(folder, **options), split))
    found = rows(getattr(load(folder, **options, pad_to="bucket"), split))
    assert len(found) == len(whole)
    expected, given = by_frames(whole), by_frames(found)
    assert expected.keys() == given.keys()
    for key, y in given.items():
        np.testing.assert_array_equal(y, expected[key])
    for x, y, weight in found:
        count = int(weight.sum())
        np.testing.assert_array_equal(weight, np.arange(len(weight)) < count)
        assert (x[count:] == -50).all()
        assert (y[count:] == -50).all()


@pytest.mark.parametrize("shuffle_seed", [None, 0])
def test_buckets_are_as_long_as_the_next_multiple_of_8(folder, shuffle_seed):
    data = load(folder, batch_size=3, shuffle_seed=shuffle_seed, pad_to="bucket")
    for name in SPLITS:
        for x, y, weight in getattr(data, name).as_numpy_iterator():
            assert len(x) <= 3
            longest = weight.sum(axis=1).max()
            assert x.shape[1] == y.shape[1] == weight.shape[1] == -(-longest // 8) * 8
            if shuffle_seed is None or name != "train":
                assert weight.sum() >= len(x) * longest / 1.2


def test_a_pass_in_buckets_depends_on_its_number_alone(folder):
    def lengths(dataset):
        return [int(row[2].sum()) for row in rows(dataset)]

    def load_train():
        return load(folder, batch_size=4, splits=["train"], pad_to="bucket")

    data = load_train()
    first, second = lengths(data.passes(0)), lengths(data.passes(1))
    assert sorted(first) == sorted(second)
    assert first != second
    assert [lengths(load_train().passes(n)) for n in (1, 0)] == [second, first]
    # Of 24 utterances of the corpus's lengths, at random a third would be padding.
    wide = [weight for _, _, weight in data.passes(0).as_numpy_iterator()]
    needed = sum(len(weight) * weight.sum(axis=1).max() for weight in wide)
    assert sum(first) / needed > 0.9


def test_legacy_swapped_targets(folder):
    right = load(folder, splits=["test"]).test
    swapped = load(folder, splits=["test"], legacy_swapped_targets=True).test
    for (x, y, weight), (y2, x2, weight2) in zip(
        rows(right), rows(swapped), strict=True
    ):
        np.testing.assert_array_equal(x, x2)
        np.testing.assert_array_equal(y, y2)
        np.testing.assert_array_equal(weight, weight2)
        # What the network then reads, shifted by one step, is what it must output.
        valid = int(weight.sum())
        np.testing.assert_array_equal(y2[: valid - 1], x2[1:valid])


@pytest.mark.parametrize(
    "batch_size",
    [pytest.param(1, marks=pytest.mark.slow), 4, 1000],
)
def test_keras_knows_the_number_of_batches(folder, batch_size):
    data = load(folder, batch_size=batch_size)
    for name in SPLITS:
        dataset = getattr(data, name)
        batches = -(-data.num_utterances[name] // batch_size)
        assert len(dataset) == batches == len(list(dataset))
    data = load(folder, batch_size=batch_size, pad_to="bucket")
    for name in SPLITS:
        dataset = getattr(data, name)
        assert len(dataset) == len(list(dataset))


def test_statistics_of_the_training_frames(folder):
    data = load(folder, splits=["train"])
    frames = np.concatenate([frames_of(x, weight) for x, _, weight in rows(data.train)])
    assert data.mean.dtype == data.std.dtype == np.float64
    # The sums of n float64 terms.
    error = 4 * len(frames) * np.finfo(float).eps
    np.testing.assert_allclose(data.mean, frames.mean(axis=0, dtype=float), rtol=error)
    std = frames.std(axis=0, dtype=float)
    np.testing.assert_allclose(
        data.std, std, rtol=error * (1 + (data.mean / std).max() ** 2)
    )


def test_keras_computes_the_papers_error(folder):
    """The sum over valid steps, over batch x all steps x bins: Wisdom et al."""
    data = load(folder, batch_size=100)
    x, y, weight = next(data.test.as_numpy_iterator())
    model = keras.Sequential([keras.Input((None, 129)), keras.layers.Identity()])
    model.compile(loss="mse")
    loss = model.evaluate(data.test, verbose=0)
    error = (x.astype(np.float64) - y) ** 2 * weight[..., None]
    expected = error.sum() / (len(x) * data.max_frames["test"] * 129)
    # Sums over x.size float32 terms, in blocks: errors grow as their logarithm.
    np.testing.assert_allclose(loss, expected, rtol=32 * np.finfo(np.float32).eps)


@pytest.mark.parametrize("swapped", [False, True])
def test_sound_is_predicted_from_what_the_network_was_trained_on(folder, swapped):
    data = load(folder, batch_size=5, legacy_swapped_targets=swapped)
    for (x, _, weight), record in zip(
        rows(data.test), utterances(folder, "test"), strict=True
    ):
        given = inputs(record.log_power, swapped)
        np.testing.assert_array_equal(given, frames_of(x, weight))


def test_records_that_were_made_anew_are_others(tmp_path):
    write_corpus(tmp_path / "corpus", SPEAKERS, ("sx1",))
    out = tmp_path / "records"
    found = []
    for seed in (0, 1, 0):
        prepare(tmp_path / "corpus", out, mode="speakers", seed=seed)
        found.append(fingerprint(out))
    assert found[0] == found[2] != found[1]


# As the utterances of TIMIT: from 1 to 8 seconds, most about 3.
LENGTHS = np.random.default_rng(0).gamma(9, 22, 100).astype(int) + 60


def orders(number=0, batch_size=8, seed=0, lengths=LENGTHS):
    order = order_in_buckets(lengths, number, batch_size=batch_size, seed=seed)
    return order.numpy()


def padding(batches):
    steps = sum(len(batch) * LENGTHS[batch].max() for batch in batches)
    return 1 - LENGTHS.sum() / steps


@pytest.mark.parametrize("batch_size", [1, 7, 8, 100, 101])
def test_each_sequence_once(batch_size):
    assert sorted(orders(batch_size=batch_size)) == list(range(100))


def test_the_sequences_of_a_batch_are_about_equally_long():
    order = orders()
    batches = np.split(order, range(8, 100, 8))
    for batch in batches:
        # Some lengths lie between those of a batch, as they are made longer by up to a
        # tenth; none lies between that is a tenth from both.
        least, most = LENGTHS[batch].min() * 1.1, LENGTHS[batch].max() / 1.1
        between = np.flatnonzero((least < LENGTHS) & (most > LENGTHS))
        assert set(between) <= set(batch)
    assert padding(batches) < 0.1
    assert padding(np.split(np.arange(100), range(8, 100, 8))) > 0.2


def test_a_pass_has_batches_and_an_order_of_its_own():
    first, second = (
        {frozenset(batch) for batch in np.split(orders(n)[:96], 12)} for n in (0, 1)
    )
    assert len(first & second) < 6
    np.testing.assert_array_equal(orders(1), orders(1))
    assert (orders(0) != orders(0, seed=1)).any()
    # In no order of their lengths.
    means = [LENGTHS[batch].mean() for batch in np.split(orders()[:96], 12)]
    assert sorted(means) != means
    assert sorted(means, reverse=True) != means


def test_boundaries():
    boundaries = bucket_boundaries(400)
    assert boundaries[0] == 2
    assert boundaries[-1] >= 400
    for least, following in itertools.pairwise(boundaries):
        assert least < following
        longest = following - 1
        assert longest <= max(least, 1.2 * least)
    assert bucket_boundaries(1) == [2]
