"""Scores of many utterances, batch by batch, and of a model by epoch inside `fit`."""

import csv
from typing import NamedTuple

import keras
import numpy as np
import pytest

from keras_ortho.audio import (
    istft,
    log_power,
    resynthesize,
    resynthesize_reference,
    stft,
)
from keras_ortho.metrics import (
    Evaluator,
    SpeechScores,
    UnscoredWarning,
    mean_scores,
    pesq,
    score_speech,
    segmental_snr,
    si_sdr,
    stoi,
)

event_accumulator = pytest.importorskip(
    "tensorboard.backend.event_processing.event_accumulator"
)
pytest.importorskip("pesq")
pytest.importorskip("pystoi")


def scores_of(estimate, reference):
    """Each score, by the function that computes it."""
    return {
        "segsnr": segmental_snr(estimate, reference, 8000).segmental,
        "stoi": stoi(estimate, reference, 8000),
        "pesq": pesq(estimate, reference, 8000),
        "si_sdr": si_sdr(estimate, reference),
    }


def means(estimates, references):
    found = [scores_of(*pair) for pair in zip(estimates, references, strict=True)]
    return {name: np.mean([each[name] for each in found]) for name in found[0]}


@pytest.fixture
def batch(speech):
    references = np.stack([speech(2, seed=seed) for seed in range(3)])
    noise = 0.03 * np.random.default_rng(9).standard_normal(references.shape)
    return references + noise, references


def test_batches_accumulate_without_their_padding(batch):
    evaluator, lengths = Evaluator(), [16000, 12000, 9000]
    estimates, references = batch
    evaluator.update(estimates[:2], references[:2], lengths[:2])
    evaluator.update(list(estimates[2:]), list(references[2:]), lengths[2:])
    cut = [[x[:n] for x, n in zip(part, lengths, strict=True)] for part in batch]
    for place, pair in enumerate(zip(*cut, strict=True)):
        found = {name: values[place] for name, values in evaluator.per_item.items()}
        assert found == scores_of(*pair)
    assert evaluator.result() == pytest.approx(means(*cut))
    estimates = estimates.copy()
    estimates[2, 0] = np.nan
    with pytest.raises(ValueError, match="finite"):
        evaluator.update(estimates, references)
    assert evaluator.result() == pytest.approx(means(*cut))
    evaluator.reset()
    assert np.isnan([*evaluator.result().values()]).all()


def test_what_cannot_be_scored_is_counted(batch):
    estimates, references = batch
    references = references * np.array([[1], [0], [1]])
    evaluator = Evaluator(["stoi", "pesq"])
    with pytest.warns(UnscoredWarning, match=r"Utterance 1: .*silent"):
        evaluator.update(estimates, references)
    expected = means(estimates[::2], references[::2])
    for name, mean in mean_scores(evaluator.per_item).items():
        assert mean == (pytest.approx(expected[name]), 1, 3)
        assert evaluator.result()[name] == mean.mean


class Utterance(NamedTuple):
    """What the callback reads of a record."""

    id: str
    audio: np.ndarray


def lengths_apart(speech):
    """Speech of three lengths, one of which is a whole number of hops."""
    return [speech(seconds, seed=i) for i, seconds in enumerate((1.3, 1.024, 0.9))]


def noisy_pairs(speech):
    random = np.random.default_rng(0)
    clean = lengths_apart(speech)
    return [(x + 0.02 * random.normal(size=len(x)), x) for x in clean]


def decibels(waveform):
    return log_power(stft(waveform))


@pytest.mark.parametrize("batch_size", [1, 2, 16])
def test_what_a_model_predicts_is_resynthesized(speech, batch_size):
    """By a function of each step alone, which padding behind does not change."""
    pairs = noisy_pairs(speech)
    noisy, clean = zip(*pairs, strict=True)
    spectra = [stft(x) for x in noisy]
    gains = [1 / (1 + np.exp(-log_power(x) / 10)) for x in spectra]
    masked = [
        istft(g * x, length=len(n))
        for g, x, n in zip(gains, spectra, noisy, strict=True)
    ]
    cases = {
        "mask": (lambda x: 1 / (1 + np.exp(-x / 10)), masked),
        # Of the masked spectrum, apart from the floor of the log power.
        "log_power": (lambda x: x - 20 * np.log10(1 + np.exp(-x / 10)), masked),
        "waveform": (lambda x: 0.9 * x[..., None], [0.9 * x for x in noisy]),
        lambda output, x: output[: len(x), 0] + x: (
            lambda x: np.zeros((*x.shape[:2], 1)),
            noisy,
        ),
    }
    for predicts, (model, expected) in cases.items():
        callback = SpeechScores(
            pairs,
            predicts,
            {"si_sdr": si_sdr, "stoi": stoi},
            batch_size=batch_size,
            features=(lambda x: x[:, None]) if callable(predicts) else None,
        )
        of_each = [scores_of(*pair) for pair in zip(expected, clean, strict=True)]
        for name, score in callback.score(model).items():
            found = np.mean([each[name] for each in of_each])
            # Spectra and features are in float32, and a power of 1e-5 is the floor.
            assert score == pytest.approx(found, abs=1e-2), (predicts, name)


def test_next_frames_of_records(speech):
    audio = [(32767 * x).astype("int16") for x in lengths_apart(speech)]
    callback = SpeechScores([Utterance("a", x) for x in audio], batch_size=2)
    repeated = [resynthesize(decibels(x), x) for x in audio]
    references = map(resynthesize_reference, audio)
    expected = means(repeated, list(references))
    # The frames are in float32.
    assert callback.score(lambda x: x) == pytest.approx(expected, 1e-5)
    perfect = callback.score(lambda x: np.roll(x, -1, axis=1))
    assert perfect["pesq"] > 4.5
    assert perfect["stoi"] > 0.999


def test_numbers_and_places(speech):
    pairs = [(level * np.ones(800), np.ones(800)) for level in range(1, 12)]
    seen = []

    def score(estimate, reference, sample_rate):
        seen.append(estimate[0])
        return sample_rate

    callback = SpeechScores(pairs, "waveform", {"s": score}, number=3, sample_rate=9000)
    assert callback.score(lambda x: x) == {"s": 9000}
    assert seen == [1, 6, 11]


def constant_scores(name, **options):
    """A callback whose score is the mean of what the model puts out."""
    scores = {name: lambda estimate, reference, sample_rate: np.mean(estimate)}
    options |= {"features": lambda x: x[:, None]}
    return SpeechScores([(np.ones(800), np.ones(800))], "waveform", scores, **options)


class Rise(keras.callbacks.Callback):
    """Sets the output of a model to another constant in each epoch."""

    def __init__(self, levels):
        super().__init__()
        self.levels = levels

    def on_epoch_begin(self, epoch, logs=None):
        """Sets the bias."""
        self.model.layers[-1].bias.assign([self.levels[epoch]])


def constant_model():
    keras.utils.set_random_seed(0)
    layers = [keras.Input((None, 1)), keras.layers.Dropout(0.5), keras.layers.Dense(1)]
    model = keras.Sequential(layers)
    model.compile(keras.optimizers.SGD(0.0), "mse")
    model.layers[-1].kernel.assign([[0.0]])
    return model


def fit(model, epochs, callbacks, **options):
    x = np.random.default_rng(0).normal(size=(6, 4, 1))
    return model.fit(x, x, epochs=epochs, callbacks=callbacks, verbose=0, **options)


@pytest.mark.backends
def test_every_callback_sees_the_scores(tmp_path):
    callback = constant_scores("pesq")
    levels = [0.1, 0.3, 0.5, 0.2, 0.4, 0.9]
    model, best = constant_model(), tmp_path / "best.keras"
    options = {"monitor": "val_pesq", "mode": "max"}
    callbacks = [
        Rise(levels),
        callback,
        keras.callbacks.ModelCheckpoint(best, **options, save_best_only=True),
        keras.callbacks.EarlyStopping(**options, patience=2),
        keras.callbacks.CSVLogger(tmp_path / "log.csv"),
    ]
    if keras.backend.backend() == "tensorflow":
        callbacks.append(keras.callbacks.TensorBoard(tmp_path, write_graph=False))
    history = fit(model, 6, callbacks, validation_split=0.5).history
    assert history["val_pesq"] == pytest.approx(levels[:5])
    assert set(history) == {"loss", "val_loss", "val_pesq"}
    with open(tmp_path / "log.csv", newline="") as file:
        logged = [float(row["val_pesq"]) for row in csv.DictReader(file)]
    assert logged == history["val_pesq"]
    kept = keras.saving.load_model(best, compile=False).layers[-1].bias
    assert float(kept[0]) == pytest.approx(0.5)
    if len(callbacks) == 6:
        board = event_accumulator.EventAccumulator(str(tmp_path / "validation"))
        assert "epoch_pesq" in board.Reload().Tags()["tensors"]


@pytest.mark.backends
def test_every_second_epoch():
    callback = constant_scores("level", every=2)
    levels = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    history = fit(constant_model(), 6, [Rise(levels), callback]).history
    expected = [0.0, 0.0, 0.2, 0.2, 0.4, 0.5]
    assert history["val_level"] == pytest.approx(expected)
    # A run that goes on at another epoch has scores at once.
    history = fit(constant_model(), 5, [Rise(levels), callback], initial_epoch=3)
    assert history.history["val_level"] == pytest.approx([0.3, 0.4])


@pytest.mark.backends
def test_training_goes_on_as_without():
    def trained(*callbacks):
        keras.utils.set_random_seed(0)
        model = keras.Sequential(
            [keras.Input((None, 1)), keras.layers.Dense(3), keras.layers.Dropout(0.5)]
        )
        model.add(keras.layers.BatchNormalization())
        model.add(keras.layers.Dense(1))
        model.compile("adam", "mse", metrics=["mae"])
        history = fit(model, 3, callbacks, validation_split=0.5, batch_size=2).history
        return history, model.get_weights()

    callback = constant_scores("level")
    alone, weights = trained()
    scored, same = trained(callback)
    assert len(set(scored.pop("val_level"))) == 3
    assert scored == alone
    for found, expected in zip(same, weights, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("predicts", "value"),
    [
        ("next_frame", np.nan),
        ("next_frame", 1e30),
        ("mask", np.inf),
        ("waveform", np.nan),
    ],
)
def test_a_network_that_puts_out_no_sound_has_no_score(speech, predicts, value):
    def one_bad(x):
        outputs = np.array(x, "float32")
        outputs[-1, 5] = value
        return outputs

    callback = SpeechScores(noisy_pairs(speech), predicts, ["stoi", "pesq"])
    assert np.isnan(list(callback.score(one_bad).values())).all()


@pytest.fixture
def utterances(speech):
    references = [speech(1 + 0.2 * seed, seed=seed) for seed in range(6)]
    rng = np.random.default_rng(9)
    return [r + 0.03 * rng.standard_normal(len(r)) for r in references], references


def test_scores(utterances):
    scores = score_speech(*utterances, processes=1, progress=False)
    pairs = list(zip(*utterances, strict=True))
    snr = [segmental_snr(*pair, 8000) for pair in pairs]
    expected = {
        "segmental_snr": [s.segmental for s in snr],
        "global_snr": [s.overall for s in snr],
        "si_sdr": [si_sdr(*pair) for pair in pairs],
        "stoi": [stoi(*pair, 8000) for pair in pairs],
        "pesq_mos_lqo": [pesq(*pair, 8000) for pair in pairs],
        "pesq_raw": [pesq(*pair, 8000, scale="raw") for pair in pairs],
    }
    assert scores.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(scores[name], values)


@pytest.mark.slow
def test_processes_give_the_same_in_the_same_order(utterances):
    estimates, references = utterances
    estimates[4] = np.zeros_like(estimates[4])
    with pytest.warns(UnscoredWarning, match="Utterance 4: .*estimate is silent"):
        alone = score_speech(estimates, references, processes=1, progress=False)
    with pytest.warns(UnscoredWarning, match="Utterance 4: .*estimate is silent"):
        together = score_speech(estimates, references, processes=2, progress=False)
    assert np.isnan(alone["pesq_raw"][4])
    assert np.isfinite(alone["stoi"]).all()
    for name, values in alone.items():
        # Sums of some hundred squares, in the order that their place in memory gives.
        np.testing.assert_allclose(together[name], values, rtol=1e-13)


def test_progress(utterances, capfd):
    estimates, references = utterances
    score_speech(estimates[:2], references[:2])
    assert "Scoring: 100%" in capfd.readouterr().err


def test_means_say_what_is_not_in_them():
    scores = {"a": np.array([1.0, np.nan, 4.0]), "b": np.full(2, np.nan)}
    means = mean_scores(scores | {"c": np.zeros(0)})
    assert means["a"] == (2.5, 1, 3)
    assert np.isnan(means["b"].mean)
    assert means["b"][1:] == (2, 2)
    assert means["c"][1:] == (0, 0)
