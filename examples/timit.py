"""Predicts the next frame of speech with recurrent networks, and scores the sound.

    keras-ortho-data /path/to/TIMIT out/timit/records
    python examples/timit.py --records out/timit/records --out out/timit
    python examples/timit.py --smoke --out out/smoke

Trains networks with equal parameter counts that differ in one layer: an LSTM, a GRU,
scoRNN and ENRNN, or the layers that `--models` names. Each network corrects the linear
prediction from the last two frames; `feed-forward` has a dense layer instead of a
recurrent one, and so shows what recurrence adds. After each epoch, validation
utterances are resynthesized and scored. The epoch with the lowest validation error is
chosen, or, with `--best-by pesq`, the one with the best score.

The table begins with four predictors for comparison: the mean frame, the previous
frame, and linear prediction from one and from two frames, with a penalty chosen on the
validation data. The test utterances are resynthesized from all predictions and scored:
mean squared error in dB^2 under both definitions in use, segmental SNR, STOI and PESQ.
A mean leaves out the utterances that have no such score, and the table says how many.
Writes results.md, results.json, curves.png, curves_stoi.png, curves_pesq.png,
spectrograms.png, wav/ and a folder for each model. If the command is run again, it
resumes. Models can be added: name the earlier ones, too.

`--preset paper` trains the papers' networks instead, each with the size and settings of
Helfrich, dissertation, 2020, sections 2.5 and 2.7, which cover scoRNN, LSTM, ENRNN and
the uRNNs. There the recurrent layer reads the decibels unscaled, and a dense layer
outputs the next frame. `--raw` trains that network with any of the layers and Adam, at
the parameter count of a scoRNN of Helfrich et al., 2018.

On the 16 speakers of NLTK's sample, 40 epochs of the five networks take 7 minutes on
one core; on all of TIMIT, an epoch takes 40 times as long. `examples/timit_splits.py`
repeats these runs for several seeds and divisions of the speakers. `--smoke` takes less
than a minute, with small networks and synthetic speech.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from experiments import device_options, linear_prediction, smoke
from experiments.distributed import distributed, on_one_device
from experiments.errors import plain_errors
from experiments.frame_network import correction
from experiments.layers import make_layer, trained_parameters
from experiments.linear_prediction import LinearPrediction
from experiments.optimizers import make_optimizer
from experiments.own_layers import is_own
from experiments.presets import Preset
from experiments.records import check_record, run_record
from experiments.settings import Settings
from experiments.speech import (
    COLUMNS,
    LINEAR_1,
    LINEAR_2,
    MEAN,
    REPEAT,
    describe,
    errors,
    inputs,
    make_frame_layer,
    short,
    title_of_frame_model,
)
from experiments.tables import write_table
from experiments.timit_options import ERROR, is_raw, read, settled
from keras_ortho import losses
from keras_ortho.audio import (
    NUM_BINS,
    SAMPLE_RATE,
    log_power,
    resynthesize,
    resynthesize_reference,
    stft,
    to_int16,
    write_wav,
)
from keras_ortho.backend.processes import process_count
from keras_ortho.diagnostics import plot_curves, plot_spectrograms
from keras_ortho.files import write_json
from keras_ortho.metrics import (
    SpeechScores,
    ValidFrameMSE,
    mean_scores,
    score_speech,
)
from keras_ortho.tasks import timit
from keras_ortho.tasks.timit_records import fingerprint
from keras_ortho.training import best_epoch, train

RECORD, TABLE = "results.json", "results.md"
# Validation utterances that are scored after each epoch, if no score chooses it.
SCORED = 8
DRAWN = {"stoi": "STOI", "pesq": "PESQ MOS-LQO"}
Predictor = Callable[[np.ndarray], np.ndarray]


@plain_errors()
def main() -> None:
    """Builds, trains and scores the networks, and writes the results."""
    settings, models = parse()
    record = run_record(settings.record())
    out, raw = settings.out, is_raw(settings)
    check_record(out, RECORD, "results", [TABLE])
    records = smoke.speech(out)["data_dir"] if settings.smoke else settings.records
    data = timit.load(
        records,
        batch_size=settings.batch_size,
        shuffle_seed=settings.seed,
        pad_to="split" if raw else "bucket",
        legacy_swapped_targets=settings.legacy_swapped_targets,
    )
    linear = {
        LINEAR_1: linear_prediction.fit(data, frames=1),
        LINEAR_2: linear_prediction.fit(data, frames=2),
    }
    predictors, rows = baselines(data, linear)
    by_epoch: dict[str, dict[str, list[float]]] = {}
    speech = SpeechScores(
        timit.utterances(records, "valid"),
        number=SCORED if settings.best_by == ERROR else None,
        features=lambda x: inputs(log_power(stft(x)), settings.legacy_swapped_targets),
    )
    trained: dict[str, tuple[keras.Model, Path]] = {}
    with distributed(settings):
        for row in models:
            # The weights do not depend on the models before it.
            keras.utils.set_random_seed(settings.seed)
            model = (
                raw_network(row, data.mean) if raw else network(row, linear[LINEAR_2])
            )
            name = title_of_frame_model(row.model)
            folder = out / (name if is_own(row.model) else row.model)
            print(f"\n{name}: {trained_parameters(model):,} trained parameters")
            rows[name], by_epoch[name] = fit(
                model, row, data, folder, records, speech, settings
            )
            trained[name] = model, folder
    for name, (model, folder) in trained.items():
        alone = on_one_device(model, folder, settings)
        predictors[name] = functools.partial(alone.predict, verbose=0)
    for name, predict in predictors.items():
        rows[name] |= errors(predict, data, "test")
        if name not in by_epoch:
            of_valid = errors(predict, data, "valid")
            rows[name]["validation_valid_frame_mse"] = of_valid["valid_frame_mse"]
    score(rows, predictors, records, settings)

    sizes = {"utterances": dict(data.num_utterances), "frames": dict(data.num_frames)}
    curves = {name: curve.pop(ERROR) for name, curve in by_epoch.items()}
    record |= {"data": sizes, "results": rows, "curves": curves, "scores": by_epoch}
    report(out, record)
    levels = (REPEAT, LINEAR_2) if raw else (REPEAT, LINEAR_1, LINEAR_2)
    plot_curves(
        out / "curves.png",
        curves,
        baselines={name: rows[name]["validation_valid_frame_mse"] for name in levels},
        ylabel="validation MSE, dB², valid frames",
        log=raw,
    )
    scores = {name: speech.score(predictors[name]) for name in (REPEAT, LINEAR_2)}
    for key, title in DRAWN.items() if process_count() == 1 else ():
        plot_curves(
            out / f"curves_{key}.png",
            {name: curve[key] for name, curve in by_epoch.items()},
            baselines={name: score[key] for name, score in scores.items()},
            ylabel=f"validation {title}, {speech.number} utterances",
        )
    print(f"\nTable, figures and sound are in {out}")


def baselines(
    data: timit.Timit, linear: Mapping[str, LinearPrediction]
) -> tuple[dict[str, Predictor], dict[str, dict[str, Any]]]:
    """Returns the predictors without a network, and the start of each table row."""
    predictors: dict[str, Predictor] = {
        MEAN: lambda x: np.broadcast_to(data.mean, np.shape(x)),
        REPEAT: lambda x: x,
        **linear,
    }
    rows: dict[str, dict[str, Any]] = {
        MEAN: {"parameters": NUM_BINS},
        REPEAT: {"parameters": 0},
    }
    for name, map in linear.items():
        parameters = map.kernel.size + map.bias.size
        rows[name] = {"parameters": parameters, "penalty": map.penalty}
    return predictors, rows


def fit(
    model: keras.Model,
    row: Preset,
    data: timit.Timit,
    folder: Path,
    records: Path,
    speech: SpeechScores,
    settings: Settings,
) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """Trains a network, in its own folder."""
    model.compile(
        make_optimizer(row.rates, len(data.train)),
        losses.ValidFrameMSE(),
        weighted_metrics=[ValidFrameMSE()],
    )
    # Several processes hold the model together, and only one the utterances.
    callbacks: list[keras.callbacks.Callback] = [speech] * (process_count() == 1)
    if settings.tensorboard:
        logs = settings.out / "tensorboard" / folder.name
        callbacks.append(keras.callbacks.TensorBoard(logs))
    shared = {
        "records": fingerprint(records),
        "batch_size": settings.batch_size,
        "seed": settings.seed,
        "raw": is_raw(settings),
        "legacy_swapped_targets": settings.legacy_swapped_targets,
    }
    history = train(
        model,
        data.passes,
        folder,
        epochs=row.epochs or settings.epochs,
        validation_data=data.valid,
        monitor=f"val_{settings.best_by}",
        mode="min" if settings.best_by == ERROR else "max",
        callbacks=callbacks,
        settings=describe(row) | shared,
    )
    curves = {
        name.removeprefix("val_"): [epoch[name] for epoch in history]
        for name in history[-1]
        if name.startswith("val_") and name != "val_loss"
    }
    best = best_epoch(
        curves[settings.best_by], "min" if settings.best_by == ERROR else "max"
    )
    return describe(row) | {
        "source": row.source,
        "parameters": trained_parameters(model),
        "epochs": len(history),
        "epoch": best + 1,
        "validation_valid_frame_mse": curves[ERROR][best],
    }, curves


def score(
    rows: Mapping[str, dict[str, Any]],
    predictors: Mapping[str, Predictor],
    records: Path,
    settings: Settings,
) -> None:
    """Resynthesizes the test utterances, and adds their scores to the rows.

    Writes the first utterance as sound, and its spectrograms as a figure.
    """
    out = settings.out
    utterances = list(timit.utterances(records, "test"))
    references = [resynthesize_reference(u.audio) for u in utterances]
    pictures = {"reference": utterances[0].log_power}
    save_wav(out, utterances[0].id, "reference", references[0])
    for number, (name, predict) in enumerate(predictors.items(), start=1):
        title = f"Scoring {name} ({number}/{len(predictors)})"
        swapped = settings.legacy_swapped_targets and name != REPEAT
        estimates = [
            resynthesize(predict(inputs(u.log_power, swapped)[None])[0], u.audio)
            for u in utterances
        ]
        if not all(np.isfinite(estimate).all() for estimate in estimates):
            raise ValueError(
                "A network must have learned frames that can be heard: leave it out "
                f"of --models, or give it a lower rate. Received: {name}"
            )
        scores = mean_scores(score_speech(estimates, references, progress=title))
        rows[name].update({key: score.mean for key, score in scores.items()})
        rows[name]["utterances"] = len(utterances)
        rows[name]["utterances_without_a_score"] = {
            key: score.unscored for key, score in scores.items()
        }
        if name not in (MEAN, LINEAR_1):
            pictures[name] = log_power(stft(estimates[0]))
        save_wav(out, utterances[0].id, name.replace(" ", "_"), estimates[0])
    plot_spectrograms(out / "spectrograms.png", pictures)


def network(row: Preset, linear: LinearPrediction) -> keras.Model:
    """Makes the network that corrects a linear prediction of the next frame."""
    layer = make_frame_layer(row.model, row.units, row.arguments)
    return correction(layer, linear)


def raw_network(row: Preset, mean: np.ndarray | float = 0.0) -> keras.Model:
    """Makes the papers' network on decibels, with the mean frame as output bias."""
    layer = make_layer(row.model, row.units, row.arguments, return_sequences=True)
    bias = keras.initializers.Constant(mean)
    outputs = keras.layers.Dense(NUM_BINS, bias_initializer=bias)
    return keras.Sequential([keras.Input((None, NUM_BINS)), layer, outputs])


def parse(argv: Sequence[str] | None = None) -> tuple[Settings, list[Preset]]:
    """Reads the command line, and returns the settings and those of each model."""
    given = read(__doc__ or "", argv)
    device_options.set_up(given)
    return settled(given)


def save_wav(out: Path, utterance: str, name: str, samples: np.ndarray) -> None:
    """Writes an utterance as a WAV file."""
    (out / "wav").mkdir(exist_ok=True)
    path = out / "wav" / f"{short(utterance)}_{name}.wav"
    write_wav(path, to_int16(samples), SAMPLE_RATE)


def figure(row: dict[str, Any], key: str) -> str:
    """Formats a figure, with the number of unscored utterances if there are any."""
    if key == "parameters":
        return f"{row[key]:,.0f}"
    unscored = row["utterances_without_a_score"].get(key, 0)
    note = f" ({unscored} of {row['utterances']} not scored)" if unscored else ""
    return f"{row[key]:.3g}{note}"


def report(out: Path, record: dict[str, Any]) -> None:
    """Prints the table, and writes it and the record."""
    rows = [
        [name, *(figure(row, key) for key in COLUMNS)]
        for name, row in record["results"].items()
    ]
    write_json(out / RECORD, record)
    table = write_table(out / TABLE, ["test", *COLUMNS.values()], rows)
    print(f"\n{table}")


if __name__ == "__main__":
    main()
