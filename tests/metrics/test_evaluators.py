"""Scores of many utterances, batch by batch, and of a model by epoch inside `fit`."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest

from keras_ortho import audio, metrics


def scores_of(estimate, reference):
    """Each score, by the function that computes it."""
    return {
        "segsnr": metrics.segmental_snr(estimate, reference, 8000).segmental,
        "stoi": metrics.stoi(estimate, reference, 8000),
        "pesq": metrics.pesq(estimate, reference, 8000),
        "si_sdr": metrics.si_sdr(estimate, reference),
    }


def means(estimates, references):
    found = [scores_of(*pair) for pair in zip(estimates, references, strict=True)]
    return {name: np.mean([each[name] for each in found]) for name in found[0]}


@pytest.fixture
def sounds(speech):
    """Noisy and clean, of three lengths, one of which is a whole number of hops."""
    random = np.random.default_rng(0)
    clean = [speech(seconds, seed=i) for i, seconds in enumerate((1.3, 1.024, 0.9))]
    return [x + 0.02 * random.normal(size=len(x)) for x in clean], clean


def test_batches_accumulate_without_their_padding(sounds):
    lengths = list(map(len, sounds[0]))
    noisy, clean = ([np.pad(x, (0, 11000 - len(x))) for x in part] for part in sounds)
    evaluator = metrics.Evaluator()
    evaluator.update(np.stack(noisy[:2]), np.stack(clean[:2]), lengths[:2])
    evaluator.update(noisy[2:], clean[2:], lengths[2:])
    for place, pair in enumerate(zip(*sounds, strict=True)):
        found = {name: values[place] for name, values in evaluator.per_item.items()}
        assert found == scores_of(*pair)
    assert evaluator.result() == pytest.approx(means(*sounds))
    evaluator.reset()
    assert np.isnan([*evaluator.result().values()]).all()


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_score_speech(sounds, processes, capfd):
    noisy, clean = sounds
    noisy[1] = np.zeros_like(noisy[1])
    message = "Utterance 1: .*estimate is silent"
    with pytest.warns(metrics.UnscoredWarning, match=message):
        scores = metrics.score_speech(noisy, clean, processes=processes)
    assert "Scoring: 100%" in capfd.readouterr().err
    for place in (0, 2):
        pair = noisy[place], clean[place]
        expected = scores_of(*pair) | {
            "global_snr": metrics.segmental_snr(*pair, 8000).overall,
            "pesq_raw": metrics.pesq(*pair, 8000, scale="raw"),
        }
        expected["segmental_snr"] = expected.pop("segsnr")
        expected["pesq_mos_lqo"] = expected.pop("pesq")
        found = {name: values[place] for name, values in scores.items()}
        # Sums of some hundred squares, in the order that memory gives.
        assert found == pytest.approx(expected, rel=1e-13)
    mean = np.mean(scores["pesq_mos_lqo"][[0, 2]])
    assert metrics.mean_scores(scores)["pesq_mos_lqo"] == (mean, 1, 3)


@pytest.mark.parametrize("batch_size", [1, 2])
def test_what_a_model_predicts_is_resynthesized(sounds, batch_size):
    """By a function of each step alone, which padding behind does not change."""

    def added(output, x):
        return output[: len(x), 0] + x

    noisy, clean = sounds
    masked = []
    for x in noisy:
        gains = 1 / (1 + np.exp(-audio.log_power(audio.stft(x)) / 10))
        masked.append(audio.istft(gains * audio.stft(x), length=len(x)))
    cases = {
        "mask": (lambda x: 1 / (1 + np.exp(-x / 10)), masked),
        # Of the masked spectrum, apart from the floor of the log power.
        "log_power": (lambda x: x - 20 * np.log10(1 + np.exp(-x / 10)), masked),
        "waveform": (lambda x: 0.9 * x[..., None], [0.9 * x for x in noisy]),
        added: (lambda x: np.zeros((*x.shape[:2], 1)), noisy),
    }
    for predicts, (model, estimates) in cases.items():
        features = (lambda x: x[:, None]) if callable(predicts) else None
        options = {"features": features, "batch_size": batch_size}
        pairs = zip(noisy, clean, strict=True)
        callback = metrics.SpeechScores(pairs, predicts, ["si_sdr", "stoi"], **options)
        expected = means(estimates, clean)
        for name, score in callback.score(model).items():
            # Spectra and features are in float32, and a power of 1e-5 is the floor.
            assert score == pytest.approx(expected[name], abs=1e-2), (predicts, name)


def test_next_frames_of_records(sounds):
    clean = [(32767 * x).astype("int16") for x in sounds[1]]
    records = [SimpleNamespace(audio=x) for x in clean]
    callback = metrics.SpeechScores(records, batch_size=2)
    repeated = [audio.resynthesize(audio.log_power(audio.stft(x)), x) for x in clean]
    expected = means(repeated, list(map(audio.resynthesize_reference, clean)))
    # The frames are in float32.
    assert callback.score(lambda x: x) == pytest.approx(expected, 1e-5)
    assert callback.score(lambda x: np.roll(x, -1, axis=1))["pesq"] > 4.5


@pytest.mark.parametrize(
    ("predicts", "value"),
    [("next_frame", np.nan), ("next_frame", 1e30), ("mask", np.inf)],
)
def test_a_network_that_puts_out_no_sound_has_no_score(sounds, predicts, value):
    def one_bad(x):
        outputs = np.array(x, "float32")
        outputs[-1, 5] = value
        return outputs

    pairs = zip(*sounds, strict=True)
    callback = metrics.SpeechScores(pairs, predicts, ["stoi", "pesq"])
    assert np.isnan(list(callback.score(one_bad).values())).all()


def fit(epochs, *callbacks, **options):
    """Trains a model that puts out another constant in each epoch."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((None, 1)), keras.layers.Dropout(0.5)])
    model.add(keras.layers.Dense(1, kernel_initializer="zeros"))
    model.compile(keras.optimizers.SGD(0.0), "mse")
    x = np.random.default_rng(0).normal(size=(6, 4, 1))
    bias, constants = model.layers[-1].bias, [[0.1], [0.3], [0.5], [0.2], [0.4], [0.9]]
    rise = keras.callbacks.LambdaCallback(lambda n, logs: bias.assign(constants[n]))
    options |= {"epochs": epochs, "callbacks": [rise, *callbacks], "verbose": 0}
    return model.fit(x, x, validation_split=0.5, **options).history


def level(**options):
    """A callback whose score is the mean of what the model puts out, of 3 in 11."""
    pairs = [(n * np.ones(80), np.ones(80)) for n in range(1, 12)]
    scores = {"level": lambda estimate, reference, sample_rate: np.mean(estimate)}
    options |= {"features": lambda x: x[:, None], "number": 3}
    return metrics.SpeechScores(pairs, "waveform", scores, **options)


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
    expected = [0.1, 0.1, 0.5, 0.5, 0.4, 0.9]
    assert fit(6, callback)["val_level"] == pytest.approx(expected)
    # A run that goes on at another epoch has scores at once.
    assert fit(5, callback, initial_epoch=3)["val_level"] == pytest.approx([0.2, 0.4])
