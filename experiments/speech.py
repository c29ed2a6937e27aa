"""What the examples on speech share: networks of equal size, tables and pictures."""

import argparse
import functools
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from experiments import layers
from experiments.comparison import spread
from experiments.layers import Units, make_layer
from experiments.linear_prediction import LinearPrediction
from experiments.options import new_parser, read_model
from experiments.presets import Preset
from keras_ortho import audio, metrics
from keras_ortho.audio import NUM_BINS
from keras_ortho.diagnostics import plot_curves, plot_spectrograms
from keras_ortho.parametrizations import GivensOrthogonal
from keras_ortho.tasks.timit import Timit

# Features that the layer in `correction` reads, and units of the layer behind it.
CHANNELS = 128
LINEAR_2 = "linear, 2 frames"
COLUMNS = {
    "validation_valid_frame_mse": "validation MSE dB²",
    "valid_frame_mse": "MSE dB², valid frames",
    "padded_frame_mse": "MSE dB², all frames",
    "segmental_snr": "SegSNR dB",
    "stoi": "STOI",
    "pesq_mos_lqo": "PESQ MOS-LQO",
    "pesq_raw": "PESQ P.862",
}
# In ENRNN, all of D is -1 and there is no coupling, as in its paper.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "scornn": {"negative_ones": 0.1},
    "enrnn": {"negative_ones": 1.0, "coupling": False},
    # Of two layers of rotations, so that the size can be matched.
    "goru-paper": {
        "parametrization": keras.saving.serialize_keras_object(
            GivensOrthogonal(2, "tunable")
        )
    },
}
# Replaces the recurrent layer, to show what recurrence is worth: a dense layer that
# sees each frame by itself.
FEED_FORWARD = "feed-forward"
layers.LAYERS[FEED_FORWARD] = layers.Kind(
    "no recurrence", lambda units, **_: keras.layers.Dense(units, activation="gelu")
)


def speech_parser(description: str) -> argparse.ArgumentParser:
    """Makes a parser with the options of the examples that compare layers on speech."""
    parser = new_parser(description)
    add = parser.add_argument
    add("--records", type=Path, help="folder that `keras-ortho-data` wrote")
    models = f"some of {', '.join(layers.LAYERS)}, or package.module:Name or "
    models += "file.py:Name of layers or cells of your own"
    add("--models", nargs="+", type=read_model, metavar="MODEL", help=models)
    add("--epochs", type=int, help="passes over the training data")
    add("--batch-size", type=int, help="utterances in a batch")
    return parser


def matched_rows(
    models: Sequence[str],
    units: int,
    width: int = NUM_BINS,
    *,
    raw: bool = False,
    rate: float = 1e-3,
) -> list[Preset]:
    """Makes settings of networks with as many parameters as that of a scoRNN."""

    def parameters(model: str, units: Units) -> int:
        layer = make_layer(model, units, ARGUMENTS.get(model), return_sequences=True)
        layer.build((None, None, width))
        outputs = layer.compute_output_shape((None, 1, width))[-1]
        return layers.trained_parameters(layer) + (outputs + 1) * width

    wanted = parameters("scornn", units)
    return [
        Preset(
            "timit",
            model,
            layers.closest_units(
                model,
                wanted,
                functools.partial(parameters, model),
                ARGUMENTS.get(model, {}),
            ),
            _rates(model, raw, rate),
            source=f"as many parameters as scoRNN with {units} units",
            arguments=ARGUMENTS.get(model, {}),
        )
        for model in models
    ]


def _rates(model: str, raw: bool, rate: float) -> dict[str, str]:
    parts = layers.parts_of(model)
    others, own = (f"adam {r:g} clipnorm 1 decay 0.97" for r in (rate, rate / 10))
    if raw:
        others = "adam 0.001" if parts else "adam 0.001 clip 1"
        # ENRNN's authors use Adam in all their experiments with speech and text.
        own = "adam 0.0001" if model == "enrnn" else "rmsprop 0.001"
    if "unitary" in parts:
        return {"others": others, "unitary": "stiefel 0.001"}
    return {"others": others, "recurrent": own} if parts else {"others": others}


def layer_of(row: Preset) -> keras.layers.Layer:
    """Makes the layer that a network has in its middle."""
    return make_layer(row.model, row.units, row.arguments, return_sequences=True)


def describe(row: Preset) -> dict[str, Any]:
    """Describes a network and its training by values for JSON."""
    names = ("model", "units", "arguments", "rates")
    return {name: getattr(row, name) for name in names}


def correction(layer: keras.layers.Layer, linear: LinearPrediction) -> keras.Model:
    """Makes the network that corrects a linear prediction, in dB, of the next frame."""
    statistics = {"mean": linear.mean, "variance": linear.std**2}
    frames = keras.Input((None, NUM_BINS))
    x = keras.layers.Normalization(**statistics)(frames)
    predicted = keras.layers.Conv1D(
        NUM_BINS, len(linear.kernel), padding="causal", trainable=False, name="linear"
    )
    prediction = predicted(x)
    predicted.set_weights([linear.kernel, linear.bias])
    h = keras.layers.Dropout(0.2)(x)
    h = keras.layers.Conv1D(CHANNELS, 2, padding="causal", activation="gelu")(h)
    states = layer(h)
    h = keras.layers.Concatenate()([h, keras.layers.Dropout(0.4)(states)])
    h = keras.layers.Dense(CHANNELS, activation="gelu")(h)
    h = keras.layers.Dropout(0.4)(h)
    corrected = keras.layers.Dense(NUM_BINS, kernel_initializer="zeros")(h)
    y = keras.layers.Add()([prediction, corrected])
    outputs = keras.layers.Normalization(**statistics, invert=True)(y)
    return keras.Model(frames, outputs)


def inputs(frames: np.ndarray, swapped: bool = False) -> np.ndarray:
    """Returns what a network reads to predict frames 1, 2, ...: they, if `swapped`."""
    if not swapped:
        return frames
    return np.concatenate([frames[1:], np.full_like(frames[:1], audio.SILENCE_DB)])


def errors(
    predict: Callable[[np.ndarray], np.ndarray], data: Timit, split: str
) -> dict[str, float]:
    """Computes the mean squared error, in dB^2, without padding and with it.

    Padding up to the longest utterance of the split counts as frames without error.
    """
    metric = metrics.ValidFrameMSE()
    for x, y, weight in getattr(data, split):
        metric.update_state(y, predict(x), sample_weight=weight)
    of_valid = float(metric.result())
    steps = data.num_utterances[split] * data.max_frames[split]
    return {
        "valid_frame_mse": of_valid,
        "padded_frame_mse": of_valid * data.num_frames[split] / steps,
    }


def mean_table(
    runs: Sequence[Sequence[Mapping[str, Any]]],
) -> tuple[list[str], list[list[str]]]:
    """Makes a table of means over divisions, with the deviations over their seeds."""
    rows = []
    for name, first in runs[0][0]["results"].items():
        found = [[record["results"][name] for record in seeds] for seeds in runs]
        rows.append([name, f"{first['parameters']:,}"])
        for key in COLUMNS:
            seeds = zip(*([row[key] for row in of] for of in found), strict=True)
            cell = spread([statistics.fmean(divisions) for divisions in seeds])
            every = [row for of in found for row in of]
            without = sum(r["utterances_without_a_score"].get(key, 0) for r in every)
            if without:
                utterances = sum(row["utterances"] for row in every)
                cell += f" ({without} of {utterances} not scored)"
            rows[-1].append(cell)
    return ["test", "parameters", *COLUMNS.values()], rows


def draw_scores(
    out: Path,
    histories: Mapping[str, Sequence[Mapping[str, float]]],
    scores: metrics.SpeechScores,
    untrained: Mapping[str, Callable[[np.ndarray], Any]],
) -> None:
    """Draws networks' STOI and PESQ by epoch, beside those of untrained functions."""
    levels = {name: scores.score(function) for name, function in untrained.items()}
    for key, title in {"stoi": "STOI", "pesq": "PESQ MOS-LQO"}.items():
        plot_curves(
            out / f"curves_{key}.png",
            {n: [epoch[f"val_{key}"] for epoch in h] for n, h in histories.items()},
            baselines={name: level[key] for name, level in levels.items()},
            ylabel=f"validation {title}, {scores.number} utterances",
        )


def draw_spectrograms(out: Path, sounds: Mapping[str, np.ndarray]) -> None:
    """Draws the spectrograms of sounds below each other."""
    spectra = {name: audio.log_power(audio.stft(x)) for name, x in sounds.items()}
    plot_spectrograms(out / "spectrograms.png", spectra)


def save_sounds(out: Path, stem: str, sounds: Mapping[str, np.ndarray]) -> None:
    """Writes sounds to a folder `wav`, scaled by one factor, to keep their ratios."""
    (out / "wav").mkdir(exist_ok=True)
    peak = max(1.0, *(float(np.abs(sound).max()) for sound in sounds.values()))
    for name, sound in sounds.items():
        path = out / "wav" / f"{stem}_{name}.wav".replace(" ", "-")
        audio.write_wav(path, sound / peak, audio.SAMPLE_RATE)
