import keras
import numpy as np
import pytest

from experiments.speech import inputs
from keras_ortho.audio import log_power, stft
from keras_ortho.data_prep.pipeline import prepare
from keras_ortho.tasks.timit import SPLITS, fingerprint, load, utterances
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


@pytest.mark.parametrize(
    ("pad_to", "swapped"), [("split", True), ("batch", False), ("bucket", False)]
)
def test_layout(folder, pad_to, swapped):
    options = {"pad_to": pad_to, "legacy_swapped_targets": swapped}
    data = load(folder, batch_size=5, shuffle_seed=None, **options)
    assert data.passes is data.train
    for name in SPLITS:
        records = list(utterances(folder, name))
        lengths = [len(record.log_power) for record in records]
        assert data.num_utterances[name] == len(records)
        assert data.num_frames[name] == sum(lengths)
        assert data.max_frames[name] == max(lengths)
        if pad_to == "bucket":
            records.sort(key=lambda record: len(record.log_power))
        dataset = getattr(data, name)
        assert len(dataset) == -(-len(records) // 5) == len(list(dataset))
        for x, _, weight in dataset.as_numpy_iterator():
            longest = int(weight.sum(axis=1).max())
            padded = {"split": max(lengths), "bucket": -(-longest // 8) * 8}
            assert x.shape[1:] == (padded.get(pad_to, longest), 129)
        for (x, y, weight), record in zip(rows(dataset), records, strict=True):
            assert record.id.startswith(f"{record.speaker}_")
            again = log_power(stft(record.audio))
            np.testing.assert_array_equal(record.log_power, again)
            count = len(again)
            np.testing.assert_array_equal(weight, np.arange(len(weight)) < count)
            # Sound is predicted from what the network was trained on.
            np.testing.assert_array_equal(x[:count], inputs(record.log_power, swapped))
            x, y = (y, x) if swapped else (x, y)
            assert x.dtype == y.dtype == weight.dtype == "float32"
            np.testing.assert_array_equal(x[:count], record.log_power)
            np.testing.assert_array_equal(y[: count - 1], record.log_power[1:])
            assert (x[count:] == -50).all()
            assert (y[count - 1 :] == -50).all()


@pytest.mark.parametrize("pad_to", ["split", "bucket"])
def test_a_pass_has_its_order_whatever_came_before(folder, pad_to):
    def order(dataset):
        return [(x * weight[:, None]).sum() for x, _, weight in rows(dataset)]

    options = {"batch_size": 4, "splits": ["train"], "pad_to": pad_to}
    data = load(folder, **options, shuffle_seed=7)
    assert data.valid is None
    first, second = order(data.passes(0)), order(data.passes(1))
    assert first != second
    records = [r.log_power.sum() for r in utterances(folder, "train")]
    for found in (first, second, order(data.train)):
        np.testing.assert_allclose(sorted(found), sorted(records), rtol=1e-6)
    again = load(folder, **options, shuffle_seed=7)
    assert [order(again.passes(1)), order(again.passes(0))] == [second, first]
    assert order(load(folder, **options, shuffle_seed=8).passes(0)) != first
    if pad_to == "bucket":
        # Of about the same lengths, at random a third would be padding, in no order.
        weights = [weight for *_, weight in data.passes(0).as_numpy_iterator()]
        assert sum(w.sum() for w in weights) / sum(w.size for w in weights) > 0.7
        means = [weight.sum(axis=1).mean() for weight in weights]
        assert means not in (sorted(means), sorted(means, reverse=True))


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


def test_records_that_were_made_anew_are_others(folder, tmp_path):
    found = []
    for seed in (0, 1):
        prepare(folder.parent / "corpus", tmp_path, mode="speakers", seed=seed)
        found.append(fingerprint(tmp_path))
    assert found[0] == fingerprint(folder) != found[1]
