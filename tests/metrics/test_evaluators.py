"""Scores of many utterances, batch by batch, and of a model by epoch inside `fit`."""

from types import SimpleNamespace

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


def noisy_and_clean(speech):
    """Of three lengths, one of which is a whole number of hops."""
    random = np.random.default_rng(0)
    clean = [speech(seconds, seed=i) for i, seconds in enumerate((1.3, 1.024, 0.9))]
    return [x + 0.02 * random.normal(size=len(x)) for x in clean], clean


def test_batches_accumulate_without_their_padding(speech):
    noisy, clean = noisy_and_clean(speech)
    lengths = list(map(len, noisy))
    padded = [[np.pad(x, (0, 11000 - len(x))) for x in part] for part in (noisy, clean)]
    evaluator = Evaluator()
    evaluator.update(np.stack(padded[0][:2]), np.stack(padded[1][:2]), lengths[:2])
    evaluator.update(padded[0][2:], padded[1][2:], lengths[2:])
    for place, pair in enumerate(zip(noisy, clean, strict=True)):
        found = {name: values[place] for name, values in evaluator.per_item.items()}
        assert found == scores_of(*pair)
    assert evaluator.result() == pytest.approx(means(noisy, clean))
    with pytest.raises(ValueError, match="finite"):
        evaluator.update([*noisy[:2], np.nan * noisy[2]], clean)
    assert len(evaluator.per_item["stoi"]) == 3
    evaluator.reset()
    assert np.isnan([*evaluator.result().values()]).all()


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_score_speech(speech, processes, capfd):
    noisy, clean = noisy_and_clean(speech)
    noisy[1] = np.zeros_like(noisy[1])
    with pytest.warns(UnscoredWarning, match="Utterance 1: .*estimate is silent"):
        scores = score_speech(noisy, clean, processes=processes)
    assert "Scoring: 100%" in capfd.readouterr().err
    with pytest.warns(UnscoredWarning):
        expected = [
            [
                *segmental_snr(*pair, 8000)[:2],
                si_sdr(*pair),
                stoi(*pair, 8000),
                pesq(*pair, 8000),
                pesq(*pair, 8000, scale="raw"),
            ]
            for pair in zip(noisy, clean, strict=True)
        ]
    names = [
        "segmental_snr",
        "global_snr",
        "si_sdr",
        "stoi",
        "pesq_mos_lqo",
        "pesq_raw",
    ]
    assert set(scores) == set(names)
    # Sums of some hundred squares, in the order that their place in memory gives.
    np.testing.assert_allclose(
        np.transpose([scores[name] for name in names]), expected, rtol=1e-13
    )
    assert mean_scores(scores)["stoi"] == (np.mean(scores["stoi"]), 0, 3)
    quality = scores["pesq_mos_lqo"]
    assert mean_scores(scores)["pesq_mos_lqo"] == (np.mean(quality[[0, 2]]), 1, 3)


@pytest.mark.parametrize("batch_size", [1, 2, 16])
def test_what_a_model_predicts_is_resynthesized(speech, batch_size):
    """By a function of each step alone, which padding behind does not change."""
    noisy, clean = noisy_and_clean(speech)
    masked = []
    for x in noisy:
        gains = 1 / (1 + np.exp(-log_power(stft(x)) / 10))
        masked.append(istft(gains * stft(x), length=len(x)))
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
    for predicts, (model, estimates) in cases.items():
        callback = SpeechScores(
            list(zip(noisy, clean, strict=True)),
            predicts,
            {"si_sdr": si_sdr, "stoi": stoi},
            batch_size=batch_size,
            features=(lambda x: x[:, None]) if callable(predicts) else None,
        )
        expected = means(estimates, clean)
        for name, score in callback.score(model).items():
            # Spectra and features are in float32, and a power of 1e-5 is the floor.
            assert score == pytest.approx(expected[name], abs=1e-2), (predicts, name)


def test_next_frames_of_records(speech):
    audio = [(32767 * x).astype("int16") for x in noisy_and_clean(speech)[1]]
    records = [SimpleNamespace(audio=x) for x in audio]
    callback = SpeechScores(records, batch_size=2)
    repeated = [resynthesize(log_power(stft(x)), x) for x in audio]
    expected = means(repeated, list(map(resynthesize_reference, audio)))
    # The frames are in float32.
    assert callback.score(lambda x: x) == pytest.approx(expected, 1e-5)
    perfect = callback.score(lambda x: np.roll(x, -1, axis=1))
    assert perfect["pesq"] > 4.5


@pytest.mark.parametrize("value", [np.nan, 1e30])
@pytest.mark.parametrize("predicts", ["next_frame", "mask", "waveform"])
def test_a_network_that_puts_out_no_sound_has_no_score(speech, predicts, value):
    def one_bad(x):
        outputs = np.array(x, "float32")
        outputs[-1, 5] = value * (np.inf if predicts != "next_frame" else 1)
        return outputs

    pairs = list(zip(*noisy_and_clean(speech), strict=True))
    callback = SpeechScores(pairs, predicts, ["stoi", "pesq"])
    assert np.isnan(list(callback.score(one_bad).values())).all()


class Rise(keras.callbacks.Callback):
    """Sets the output of a model to another constant in each epoch."""

    def on_epoch_begin(self, epoch, logs=None):
        """Sets the bias."""
        self.model.layers[-1].bias.assign([[0.1, 0.3, 0.5, 0.2, 0.4, 0.9][epoch]])


def fit(epochs, *callbacks, **options):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((None, 1)), keras.layers.Dropout(0.5)])
    model.add(keras.layers.Dense(1, kernel_initializer="zeros"))
    model.compile(keras.optimizers.SGD(0.0), "mse")
    x = np.random.default_rng(0).normal(size=(6, 4, 1))
    options |= {"epochs": epochs, "callbacks": [Rise(), *callbacks], "verbose": 0}
    return model.fit(x, x, validation_split=0.5, **options).history


def level(**options):
    """A callback whose score is the mean of what the model puts out, of 3 in 11."""
    pairs = [(n * np.ones(80), np.ones(80)) for n in range(1, 12)]
    scores = {"level": lambda estimate, reference, sample_rate: np.mean(estimate)}
    options |= {"features": lambda x: x[:, None], "number": 3}
    return SpeechScores(pairs, "waveform", scores, **options)


@pytest.mark.backends
def test_every_callback_sees_the_scores(tmp_path):
    callback = level()
    assert callback.score(lambda x: x) == {"level": 6.0}
    best = tmp_path / "best.keras"
    options = {"monitor": "val_level", "mode": "max"}
    history = fit(
        6,
        callback,
        keras.callbacks.ModelCheckpoint(best, **options, save_best_only=True),
        keras.callbacks.EarlyStopping(**options, patience=2),
    )
    assert history["val_level"] == pytest.approx([0.1, 0.3, 0.5, 0.2, 0.4])
    kept = keras.saving.load_model(best, compile=False).layers[-1].bias
    assert float(kept[0]) == pytest.approx(0.5)
    # Training goes on as without.
    del history["val_level"]
    assert history == fit(5)


@pytest.mark.backends
def test_every_second_epoch():
    callback = level(every=2)
    history = fit(6, callback)
    expected = [0.1, 0.1, 0.5, 0.5, 0.4, 0.9]
    assert history["val_level"] == pytest.approx(expected)
    # A run that goes on at another epoch has scores at once.
    history = fit(5, callback, initial_epoch=3)
    assert history["val_level"] == pytest.approx([0.2, 0.4])
