"""Predicts the next frame of speech with scoRNN and an LSTM, and scores the sound.

    python -m data_prep /path/to/TIMIT out/timit/records
    python examples/timit.py --records out/timit/records --out out/timit

Trains scoRNN and an LSTM of equal parameter count, chooses the epoch of least
validation error, resynthesizes the test utterances from the predictions, and
compares both with repeating the previous frame: mean squared error in dB^2 under both
definitions in use, segmental SNR, STOI and PESQ. Started again it goes on where it
was. The settings are those of Helfrich et al., 2018, and of the second author's
dissertation; 200 epochs on the whole of TIMIT take about a day on 2 cores.
"""

import argparse
import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_ortho import ScoRNN, losses
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
from keras_ortho.files import replacing
from keras_ortho.metrics import PaddedFrameMSE, ValidFrameMSE, score_speech
from keras_ortho.optimizers import RMSpropTF1, paper_optimizer
from keras_ortho.tasks import timit
from keras_ortho.training import train

REPEAT = "previous frame"
COLUMNS = {
    "parameters": "parameters",
    "valid_frame_mse": "MSE dB², valid frames",
    "padded_frame_mse": "MSE dB², all frames",
    "segmental_snr": "SegSNR dB",
    "stoi": "STOI",
    "pesq_mos_lqo": "PESQ MOS-LQO",
    "pesq_raw": "PESQ P.862",
}


def main() -> None:
    """Runs the command."""
    options = parse()
    data = timit.load(
        options.records,
        batch_size=options.batch_size,
        shuffle_seed=options.seed,
        legacy_swapped_targets=options.legacy_swapped_targets,
    )
    options.out.mkdir(parents=True, exist_ok=True)
    mean = mean_frame(data.train)
    predictors: dict[str, Callable[[np.ndarray], np.ndarray]] = {REPEAT: lambda x: x}
    rows: dict[str, dict[str, float]] = {REPEAT: {"parameters": 0}}
    curves: dict[str, list[float]] = {}
    for name, model in models(options, mean).items():
        print(f"\n{name}: {trained_parameters(model):,} trained parameters")
        history = train(
            model,
            data.passes,
            options.out / name.lower(),
            epochs=options.epochs,
            validation_data=data.valid,
            monitor="val_valid_frame_mse",
            settings={
                key: str(value)
                for key, value in vars(options).items()
                if key not in ("out", "epochs")
            },
        )
        curves[name] = [row["val_valid_frame_mse"] for row in history]
        rows[name] = {
            "parameters": trained_parameters(model),
            "epoch": int(np.argmin(curves[name])) + 1,
            "validation_valid_frame_mse": min(curves[name]),
        }
        predictors[name] = functools.partial(model.predict, verbose=0)

    utterances = list(timit.utterances(options.records, "test"))
    references = [resynthesize_reference(u.audio) for u in utterances]
    pictures = {"reference": utterances[0].log_power}
    save_wav(options.out, utterances[0].id, "reference", references[0])
    for name, predict in predictors.items():
        rows[name] |= errors(predict, data.test)
        if name == REPEAT:
            rows[name]["validation_valid_frame_mse"] = errors(predict, data.valid)[
                "valid_frame_mse"
            ]
        print(f"\n{name}: resynthesis")
        estimates = [
            resynthesize(predict(u.log_power[None])[0], u.audio) for u in utterances
        ]
        scores = score_speech(estimates, references)
        rows[name] |= {key: float(np.nanmean(v)) for key, v in scores.items()}
        unscored = max(int(np.isnan(v).sum()) for v in scores.values())
        rows[name]["utterances_without_a_score"] = unscored
        pictures[name] = log_power(stft(estimates[0]))
        save_wav(options.out, utterances[0].id, name.replace(" ", "_"), estimates[0])

    report(options, data, rows)
    level = {REPEAT: rows[REPEAT]["validation_valid_frame_mse"]}
    plot_curves(
        options.out / "curves.png",
        curves,
        baselines=level,
        ylabel="validation MSE, dB², valid frames",
        log=True,
    )
    plot_spectrograms(options.out / "spectrograms.png", pictures)
    print(f"\nTable, figures and sound are in {options.out}")


def parse() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--records", type=Path, required=True, help="what `python -m data_prep` wrote")
    add("--out", type=Path, required=True, help="folder for the results")
    add("--units", type=int, default=224, help="units of scoRNN (224)")
    add(
        "--negative-ones",
        type=float,
        default=0.1,
        help="fraction of the units with -1 in D (0.1)",
    )
    add("--epochs", type=int, default=200, help="(200)")
    add("--batch-size", type=int, default=28, help="utterances in a batch (28)")
    add("--rate", type=float, default=1e-3, help="rate of Adam (1e-3)")
    add(
        "--recurrent-rate",
        type=float,
        default=1e-3,
        help="rate of RMSprop for the skew entries (1e-3)",
    )
    add("--seed", type=int, default=0, help="(0)")
    add(
        "--legacy-swapped-targets",
        action="store_true",
        help="give the network the frame it is to predict; for comparison only",
    )
    return parser.parse_args()


def models(options: argparse.Namespace, mean: np.ndarray) -> dict[str, keras.Model]:
    """Makes scoRNN, and the LSTM with as close as possible to as many parameters."""

    def network(layer: keras.layers.Layer, optimizer: Any) -> keras.Model:
        # Both start from the mean spectrum rather than from 0 dB.
        bias = keras.initializers.Constant(mean)
        model = keras.Sequential(
            [
                keras.Input((None, NUM_BINS)),
                layer,
                keras.layers.Dense(NUM_BINS, bias_initializer=bias),
            ]
        )
        model.compile(
            optimizer, losses.ValidFrameMSE(), weighted_metrics=[ValidFrameMSE()]
        )
        return model

    keras.utils.set_random_seed(options.seed)
    layer = ScoRNN(
        options.units, negative_ones=options.negative_ones, return_sequences=True
    )
    optimizer = paper_optimizer(
        recurrent=RMSpropTF1(options.recurrent_rate),
        others=keras.optimizers.Adam(options.rate),
    )
    scornn = network(layer, optimizer)
    units = lstm_units(trained_parameters(scornn))
    lstm = network(
        keras.layers.LSTM(units, return_sequences=True),
        keras.optimizers.Adam(options.rate, clipvalue=1.0),
    )
    return {"scoRNN": scornn, "LSTM": lstm}


def trained_parameters(model: keras.Model) -> int:
    """Counts the trained parameters of a model."""
    return sum(int(np.prod(v.shape)) for v in model.trainable_variables)


def lstm_units(parameters: int, features: int = NUM_BINS) -> int:
    """The size of the LSTM whose network is closest to that many parameters."""

    def count(n: int) -> int:
        return 4 * n * (n + features + 1) + features * (n + 1)

    return min(range(1, 4096), key=lambda n: abs(count(n) - parameters))


def mean_frame(train_data: Any) -> np.ndarray:
    """The mean of the valid target frames, of shape `(129,)`."""
    total, frames = np.zeros(NUM_BINS), 0.0
    for _, y, weight in train_data:
        total += np.einsum("btf,bt->f", y, weight, dtype="float64")
        frames += float(np.sum(weight))
    return total / frames


def errors(predict: Callable[[np.ndarray], np.ndarray], data: Any) -> dict[str, float]:
    """The mean squared error in dB² under both definitions."""
    metrics: list[Any] = [ValidFrameMSE(), PaddedFrameMSE()]
    for x, y, weight in data:
        for metric in metrics:
            metric.update_state(y, predict(x), sample_weight=weight)
    return {metric.name: float(metric.result()) for metric in metrics}


def save_wav(out: Path, utterance: str, name: str, samples: np.ndarray) -> None:
    """Writes an utterance as a wav file."""
    (out / "wav").mkdir(exist_ok=True)
    path = out / "wav" / f"{utterance}_{name}.wav"
    write_wav(path, to_int16(samples), SAMPLE_RATE)


def report(
    options: argparse.Namespace, data: timit.Timit, rows: dict[str, dict[str, float]]
) -> None:
    """Prints the table, and writes it with the settings."""
    lines = [
        "| test | " + " | ".join(COLUMNS.values()) + " |",
        "|" + " --- |" * (len(COLUMNS) + 1),
    ]
    for name, row in rows.items():
        cells = [
            f"{row[key]:,.0f}" if key == "parameters" else f"{row[key]:.3g}"
            for key in COLUMNS
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    table = "\n".join(lines)
    settings = {key: str(value) for key, value in vars(options).items()}
    sizes = {"utterances": dict(data.num_utterances), "frames": dict(data.num_frames)}
    results = {"settings": settings, "data": sizes, "results": rows}
    with replacing(options.out / "results.md") as aside:
        aside.write_text(table + "\n")
    with replacing(options.out / "results.json") as aside:
        aside.write_text(json.dumps(results, indent=1))
    print(f"\n{table}")


if __name__ == "__main__":
    main()
