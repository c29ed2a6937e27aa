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

import argparse
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from experiments import linear_prediction, smoke
from experiments.errors import plain_errors
from experiments.layers import LAYERS, make_layer, trained_parameters
from experiments.linear_prediction import LinearPrediction
from experiments.optimizers import make_optimizer
from experiments.options import (
    Settings,
    check_values,
    new_parser,
    read_units,
    settle,
)
from experiments.own_layers import is_own
from experiments.presets import Preset
from experiments.records import check_record, run_record
from experiments.speech import (
    CHANNELS,
    COLUMNS,
    FEED_FORWARD,
    LINEAR_1,
    LINEAR_2,
    MEAN,
    OUTPUTS,
    REPEAT,
    check_titles,
    correction,
    describe,
    errors,
    inputs,
    make_frame_layer,
    matched_rows,
    paper_rows,
    read_frame_model,
    short,
    title_of_frame_model,
)
from experiments.tables import write_table
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
from keras_ortho.diagnostics import plot_curves, plot_spectrograms
from keras_ortho.files import write_json
from keras_ortho.metrics import (
    SpeechScores,
    ValidFrameMSE,
    mean_scores,
    score_speech,
)
from keras_ortho.metrics.evaluators import SCORES
from keras_ortho.tasks import timit
from keras_ortho.tasks.timit_records import fingerprint
from keras_ortho.training import best_epoch, train

RECORD, TABLE = "results.json", "results.md"
ERROR = "valid_frame_mse"
USUAL: dict[str, Any] = {
    "models": [FEED_FORWARD, "lstm", "gru", "scornn", "enrnn"],
    "units": [128],
    "rate": 1e-3,
    "epochs": 40,
    "batch_size": 8,
}
# Defaults of the papers' networks, for all models.
PAPER: dict[str, Any] = {"models": ["scornn", "lstm"], "batch_size": 28}
RAW: dict[str, Any] = PAPER | {
    "units": [224],
    "rate": 1e-3,
    "epochs": 200,
}
SMOKE: dict[str, Any] = {
    "models": ["lstm", "scornn"],
    "units": [12],
    "epochs": 2,
    "batch_size": 2,
}
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
    for row in models:
        # The weights do not depend on the models before it.
        keras.utils.set_random_seed(settings.seed)
        model = raw_network(row, data.mean) if raw else network(row, linear[LINEAR_2])
        name = title_of_frame_model(row.model)
        folder = out / (name if is_own(row.model) else row.model)
        print(f"\n{name}: {trained_parameters(model):,} trained parameters")
        rows[name], by_epoch[name] = fit(
            model, row, data, folder, records, speech, settings
        )
        predictors[name] = functools.partial(model.predict, verbose=0)
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
    for key, title in DRAWN.items():
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
        callbacks=[speech],
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
    return correction(make_frame_layer(row.model, row.units, row.arguments), linear)


def raw_network(row: Preset, mean: np.ndarray | float = 0.0) -> keras.Model:
    """Makes the papers' network on decibels, with the mean frame as output bias."""
    layer = make_layer(row.model, row.units, row.arguments, return_sequences=True)
    bias = keras.initializers.Constant(mean)
    outputs = keras.layers.Dense(NUM_BINS, bias_initializer=bias)
    return keras.Sequential([keras.Input((None, NUM_BINS)), layer, outputs])


def parse(argv: Sequence[str] | None = None) -> tuple[Settings, list[Preset]]:
    """Reads the command line, and returns the settings and those of each model."""
    parser = new_parser(__doc__)
    add = parser.add_argument
    add("--records", type=Path, help="folder that `keras-ortho-data` wrote")
    add(
        "--models",
        nargs="+",
        type=read_frame_model,
        metavar="MODEL",
        help=f"some of {', '.join([FEED_FORWARD, *LAYERS])}, or layers or cells of "
        "your own: package.module:Name, file.py:Name "
        f"({' '.join(USUAL['models'])}; with --preset and --raw "
        f"{' '.join(PAPER['models'])})",
    )
    add("--preset", choices=["paper"], help="train the papers' networks, as they did")
    add("--raw", action="store_true", help="train the papers' network, on raw decibels")
    add(
        "--units",
        type=read_units,
        nargs="+",
        help="units of scoRNN, whose parameter count all models match (128; with --raw "
        "224); with --preset one of the paper's sizes for each model, such as 425 or "
        "374/94",
    )
    add("--rate", type=float, help="rate of Adam (1e-3)")
    add(
        "--recurrent-rate",
        type=float,
        help="rate for the free variables of the recurrent matrix (a tenth of --rate; "
        "with --raw RMSprop's, 1e-3, ENRNN's of Adam, 1e-4)",
    )
    add(
        "--best-by",
        choices=[ERROR, *SCORES],
        default=ERROR,
        help="the validation figure by which the best epoch is chosen (the error)",
    )
    add("--epochs", type=int, help="(40; with --raw 200, with --preset the paper's)")
    add("--batch-size", type=int, help="utterances (8; with --raw and --preset 28)")
    add(
        "--legacy-swapped-targets",
        action="store_true",
        help="give the network the frame it is to predict; for comparison only, with "
        "--raw or --preset",
    )
    given = parser.parse_args(argv)
    check_values(given, "speech")
    if given.smoke == (given.records is not None):
        which = "both" if given.smoke else "neither"
        raise ValueError(f"give either --records or --smoke. Received: {which}")
    if given.preset and given.raw:
        raise ValueError(
            "--preset has the papers' sizes, and --raw has not: give one of them. "
            "Received: both"
        )
    small = SMOKE if given.smoke else {}
    usual = PAPER if given.preset else RAW if given.raw else USUAL
    settings = settle(vars(given), small, usual)
    check_titles(settings.models)
    rows = rows_of(settings)
    if settings.epochs is not None:
        rows = [dataclasses.replace(row, epochs=settings.epochs) for row in rows]
    return settings, rows


def is_raw(settings: argparse.Namespace) -> bool:
    """Whether the networks are the papers'."""
    return bool(settings.raw or settings.preset)


def rows_of(settings: Settings) -> list[Preset]:
    """Finds the papers' settings of the models, or makes settings of equal size."""
    names = ("rate", "recurrent_rate")
    given = {name: getattr(settings, name) for name in names}
    given = {name: value for name, value in given.items() if value is not None}
    if settings.preset:
        for name, value in sorted(given.items()):
            option = f"--{name.replace('_', '-')}"
            raise ValueError(
                f"--preset uses the papers' settings: omit {option}. Received: {value}"
            )
        return paper_rows(settings.models, settings.units)
    units, *more = settings.units
    if more or isinstance(units, tuple):
        raise ValueError(
            "--units must be one number, that of scoRNN; only with --preset is there "
            f"a size of each model. Received: {settings.units}"
        )
    if settings.raw:
        return matched_rows(settings.models, units, raw=True, **given)
    return matched_rows(
        settings.models, units, features=CHANNELS, outputs=OUTPUTS, **given
    )


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
