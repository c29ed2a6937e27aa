"""Predicts the next frame of speech with recurrent networks, and scores the sound.

    keras-ortho-data /path/to/TIMIT out/timit/records
    python examples/timit.py --records out/timit/records --out out/timit
    python examples/timit.py --smoke --out out/smoke

Networks with equal parameter counts differ in one layer. Each corrects the linear
prediction from the last two frames; `feed-forward` has a dense layer instead of a
recurrent one. `--preset paper` trains the papers' networks, each with its settings
(Helfrich, dissertation, 2020, sections 2.5 and 2.7: scoRNN, LSTM, ENRNN and the uRNNs);
they read the decibels unscaled. `--raw` trains that network with any layer and Adam, at
the parameter count of a scoRNN of Helfrich et al., 2018.

Writes results.md, results.json, curves and spectrograms as PNG, wav/ and a folder for
each model. If the command is run again, it resumes; models can be added. On the 16
speakers of NLTK's sample, 40 epochs of the five networks take 7 minutes on one core.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import keras
import numpy as np

from experiments import linear_prediction, presets, smoke, speech
from experiments.engine import plain_errors
from experiments.layers import title_of, trained_parameters
from experiments.optimizers import make_optimizer
from experiments.options import Settings, check_values, read_units, settle
from experiments.records import check_record, run_record
from experiments.speech import LINEAR_2
from experiments.tables import write_table
from keras_ortho import audio, diagnostics, losses, metrics
from keras_ortho.files import write_json
from keras_ortho.metrics.evaluators import SCORES
from keras_ortho.tasks import timit
from keras_ortho.training import best_epoch, train

RECORD, TABLE = "results.json", "results.md"
ERROR, VALIDATION = "valid_frame_mse", "validation_valid_frame_mse"
# The first rows of the table, without a network.
MEAN, REPEAT, LINEAR_1 = "mean frame", "previous frame", "linear, 1 frame"
NETWORKS = [speech.FEED_FORWARD, "lstm", "gru", "scornn", "enrnn"]
USUAL = {"models": NETWORKS, "units": [128], "epochs": 40, "batch_size": 8}
PAPER = {"models": ["scornn", "lstm"], "batch_size": 28}
RAW = PAPER | {"units": [224], "epochs": 200}
SMOKE = {"models": ["lstm", "scornn"], "units": [12], "epochs": 2, "batch_size": 2}


@plain_errors()
def main() -> None:
    """Builds, trains and scores the networks, and writes the results."""
    settings, rows = parse()
    record, out = run_record(settings.record()), settings.out
    check_record(out, RECORD, "results", [TABLE])
    records = settings.records or smoke.speech(out)["data_dir"]
    raw, swapped = settings.raw or settings.preset, settings.legacy_swapped_targets
    data = timit.load(
        records,
        batch_size=settings.batch_size,
        shuffle_seed=settings.seed,
        pad_to="split" if raw else "bucket",
        legacy_swapped_targets=swapped,
    )
    linear = [linear_prediction.fit(data, frames) for frames in (1, 2)]
    sizes = [audio.NUM_BINS, 0, *(map.kernel.size + map.bias.size for map in linear)]
    predictors: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        MEAN: lambda x: np.broadcast_to(data.mean, np.shape(x)),
        REPEAT: lambda x: x,
        LINEAR_1: linear[0],
        LINEAR_2: linear[1],
    }
    results: dict[str, dict[str, Any]] = {
        name: {"parameters": size} for name, size in zip(predictors, sizes, strict=True)
    }
    for name, predict in predictors.items():
        results[name][VALIDATION] = speech.errors(predict, data, "valid")[ERROR]
    for name, map in zip((LINEAR_1, LINEAR_2), linear, strict=True):
        results[name]["penalty"] = map.penalty

    monitor, by_error = f"val_{settings.best_by}", settings.best_by == ERROR
    mode: Literal["min", "max"] = "min" if by_error else "max"
    scores = metrics.SpeechScores(
        timit.utterances(records, "valid"),
        number=8 if by_error else None,  # If scores choose the epoch, all.
        features=lambda x: speech.inputs(audio.log_power(audio.stft(x)), swapped),
    )
    histories = {}
    for row in rows:
        # The weights do not depend on the models before it.
        keras.utils.set_random_seed(settings.seed)
        layer = speech.layer_of(row)
        model = of_decibels(layer, data) if raw else speech.correction(layer, linear[1])
        model.compile(
            make_optimizer(row.rates, len(data.train)),
            losses.ValidFrameMSE(),
            weighted_metrics=[metrics.ValidFrameMSE()],
        )
        name, parameters = title_of(row.model), trained_parameters(model)
        print(f"\n{name}: {parameters:,} trained parameters")
        described = speech.describe(row)
        epochs: Any = settings.epochs or row.epochs
        history = train(
            model,
            data.passes,
            out / row.model.rpartition(":")[2],
            epochs=epochs,
            validation_data=data.valid,
            monitor=monitor,
            mode=mode,
            callbacks=[scores],
            settings={
                **described,
                "records": timit.fingerprint(records),
                "batch_size": settings.batch_size,
                "seed": settings.seed,
                "raw": bool(raw),
                "legacy_swapped_targets": swapped,
            },
        )
        best = history[best_epoch([epoch[monitor] for epoch in history], mode)]
        results[name] = {
            **described,
            "source": row.source,
            "parameters": parameters,
            "epochs": len(history),
            "epoch": best["epoch"],
            VALIDATION: best[f"val_{ERROR}"],
        }
        histories[name] = history
        predictors[name] = partial(model.predict, verbose=0)

    utterances = list(timit.utterances(records, "test"))
    references = [audio.resynthesize_reference(u.audio) for u in utterances]
    sounds = {"reference": references[0]}
    for number, (name, predict) in enumerate(predictors.items(), start=1):
        reads = partial(speech.inputs, swapped=swapped and name != REPEAT)
        estimates = [
            audio.resynthesize(predict(reads(u.log_power)[None])[0], u.audio)
            for u in utterances
        ]
        title = f"Scoring {name} ({number}/{len(predictors)})"
        found = metrics.score_speech(estimates, references, progress=title)
        means = metrics.mean_scores(found)
        results[name] |= speech.errors(predict, data, "test")
        results[name] |= {key: score.mean for key, score in means.items()}
        results[name] |= {
            "utterances": len(utterances),
            "utterances_without_a_score": {k: s.unscored for k, s in means.items()},
        }
        sounds[name] = estimates[0]

    curves = {
        name: [epoch[f"val_{ERROR}"] for epoch in history]
        for name, history in histories.items()
    }
    counts = {"utterances": dict(data.num_utterances), "frames": dict(data.num_frames)}
    record |= {"data": counts, "results": results, "curves": curves}
    write_json(out / RECORD, record)
    print(f"\n{write_table(out / TABLE, *speech.mean_table([[record]]))}")
    levels = [REPEAT, LINEAR_2] if raw else [REPEAT, LINEAR_1, LINEAR_2]
    diagnostics.plot_curves(
        out / "curves.png",
        curves,
        baselines={name: results[name][VALIDATION] for name in levels},
        ylabel="validation MSE, dB², valid frames",
        log=bool(raw),
    )
    untrained = {name: predictors[name] for name in (REPEAT, LINEAR_2)}
    speech.draw_scores(out, histories, scores, untrained)
    speech.save_sounds(out, utterances[0].id[:60], sounds)
    shown = {n: s for n, s in sounds.items() if n not in (MEAN, LINEAR_1)}
    speech.draw_spectrograms(out, shown)
    print(f"\nTable, figures and sound are in {out}")


def of_decibels(layer: keras.layers.Layer, data: timit.Timit) -> keras.Model:
    """Makes the papers' network, with the mean frame as output bias."""
    mean = keras.initializers.Constant(data.mean)
    outputs = keras.layers.Dense(audio.NUM_BINS, bias_initializer=mean)
    return keras.Sequential([keras.Input((None, audio.NUM_BINS)), layer, outputs])


def parse(argv: Sequence[str] | None = None) -> tuple[Settings, list[presets.Preset]]:
    """Reads the command line, and returns the settings and those of each model."""
    parser = speech.speech_parser(__doc__)
    add = parser.add_argument
    networks = parser.add_mutually_exclusive_group()
    networks.add_argument("--preset", choices=["paper"], help="the papers' networks")
    networks.add_argument("--raw", action="store_true", help="on unscaled decibels")
    units = "of scoRNN, whose parameter count all match; with --preset of each model"
    add("--units", type=read_units, nargs="+", help=units)
    best = "the validation figure that chooses the epoch (the error)"
    add("--best-by", choices=[ERROR, *SCORES], default=ERROR, help=best)
    swapped = "read the frame that is to be predicted; only with --raw or --preset"
    add("--legacy-swapped-targets", action="store_true", help=swapped)
    given = parser.parse_args(argv)
    check_values(given, "speech")
    if not (given.records or given.smoke):
        raise ValueError("Give --records or --smoke. Received: neither")
    usual = PAPER if given.preset else RAW if given.raw else USUAL
    settings = settle(vars(given), SMOKE if given.smoke else {}, usual)
    models, sizes = settings.models, settings.units
    if sizes and len(sizes) != (len(models) if settings.preset else 1):
        raise ValueError(
            "--units must be one number, that of scoRNN, or with --preset one size for "
            f"each of --models. Received: {sizes} for {models}"
        )
    if settings.preset:
        pairs = zip(models, sizes or [None] * len(models), strict=True)
        return settings, [presets.find("timit", *pair) for pair in pairs]
    width = audio.NUM_BINS if settings.raw else speech.CHANNELS
    return settings, speech.matched_rows(models, sizes[0], width, raw=settings.raw)


if __name__ == "__main__":
    main()
