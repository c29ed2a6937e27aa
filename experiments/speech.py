"""Settings and errors of networks that predict the next frame of speech."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from experiments.layers import (
    Units,
    closest_units,
    make_layer,
    parts_of,
    title_of,
    trained_parameters,
)
from experiments.linear_prediction import LinearPrediction
from experiments.options import read_model
from experiments.presets import Preset, find
from keras_ortho.audio import NUM_BINS, SILENCE_DB
from keras_ortho.metrics import ValidFrameMSE
from keras_ortho.parametrizations import GivensOrthogonal
from keras_ortho.tasks.timit import Timit

# Features per frame that the layer in the middle reads, and units of the dense layer
# that follows it.
CHANNELS = 128
OUTPUTS = 128
# The first rows of every table.
MEAN, REPEAT = "mean frame", "previous frame"
LINEAR_1, LINEAR_2 = "linear, 1 frame", "linear, 2 frames"
COLUMNS = {
    "parameters": "parameters",
    "validation_valid_frame_mse": "validation MSE dB²",
    "valid_frame_mse": "MSE dB², valid frames",
    "padded_frame_mse": "MSE dB², all frames",
    "segmental_snr": "SegSNR dB",
    "stoi": "STOI",
    "pesq_mos_lqo": "PESQ MOS-LQO",
    "pesq_raw": "PESQ P.862",
}
# Replaces the recurrent layer of the network, to show what recurrence is worth: a dense
# layer that sees each frame by itself.
FEED_FORWARD = "feed-forward"
STOCK = ("lstm", "gru", "rnn", "irnn")
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
# Rules of the recurrent matrix in the network on raw decibels. ENRNN's authors use
# Adam at 1e-4 for it in all of their experiments with speech and text.
RECURRENT = {"enrnn": ("adam", 1e-4), "full-urnn": ("stiefel", 1e-3)}


def correction(layer: keras.layers.Layer, linear: LinearPrediction) -> keras.Model:
    """Makes the network that corrects a linear prediction of the next frame.

    Inputs and outputs are in dB; the network works in standardized units. The linear
    prediction is not trained, and the correction starts at zero.
    """
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
    h = keras.layers.Dense(OUTPUTS, activation="gelu")(h)
    h = keras.layers.Dropout(0.4)(h)
    corrected = keras.layers.Dense(NUM_BINS, kernel_initializer="zeros")(h)
    y = keras.layers.Add()([prediction, corrected])
    outputs = keras.layers.Normalization(**statistics, invert=True)(y)
    return keras.Model(frames, outputs)


def paper_rows(models: Sequence[str], units: Sequence[Units] | None) -> list[Preset]:
    """Finds the papers' settings."""
    sizes: Sequence[Units | None] = units or [None] * len(models)
    if len(sizes) != len(models):
        raise ValueError(
            "`units` must have one size for each of `models`. "
            f"Received: units={units} for {list(models)}"
        )
    return [
        find("timit", model, size) for model, size in zip(models, sizes, strict=True)
    ]


def matched_rows(
    models: Sequence[str],
    units: int,
    *,
    features: int = NUM_BINS,
    outputs: int = NUM_BINS,
    raw: bool = False,
    rate: float = 1e-3,
    recurrent_rate: float | None = None,
) -> list[Preset]:
    """Makes settings of networks with as many parameters as that of a scoRNN.

    The optimizer is Adam. The free parameters of the recurrent matrix have their own:
    Adam at a tenth of the learning rate, or for the full-capacity uRNN, descent along
    the unitary matrices. Adam clips the global norm of the gradients to 1, and its
    learning rate decreases by 3 % after each pass over the data. In ENRNN, all of D is
    -1 and there is no coupling, as in its paper.

    With `raw`, the rates are those of the network on raw decibels: constant, RMSprop
    for the recurrent matrix (Adam for ENRNN), and for Keras's own layers each entry of
    the gradients is clipped to 1.
    """
    shape = {"features": features, "outputs": outputs}
    parameters = count_parameters("scornn", units, ARGUMENTS["scornn"], **shape)

    def row(model: str) -> Preset:
        own = ARGUMENTS.get(model, {})
        found: Units = units
        if model != "scornn":
            found = closest_units(
                model,
                parameters,
                lambda units: count_parameters(model, units, own, **shape),
            )
        return Preset(
            "timit",
            model,
            found,
            (_raw_rates if raw else _rates)(model, rate, recurrent_rate),
            source=f"as many parameters as scoRNN with {units} units",
            arguments=own,
        )

    return [row(model) for model in models]


def _parts(model: str) -> tuple[str, ...]:
    return () if model == FEED_FORWARD else parts_of(model)


def _rates(model: str, rate: float, recurrent_rate: float | None) -> dict[str, str]:
    more = "clipnorm 1 decay 0.97"
    rules = {"others": f"adam {rate} {more}"}
    if "unitary" in _parts(model):
        rules["unitary"] = f"stiefel {recurrent_rate or 1e-3}"
    elif _parts(model):
        rules["recurrent"] = f"adam {recurrent_rate or rate / 10} {more}"
    return rules


def _raw_rates(model: str, rate: float, recurrent_rate: float | None) -> dict[str, str]:
    if model in STOCK:
        return {"others": f"adam {rate} clip 1"}
    kind, usual = RECURRENT.get(model, ("rmsprop", 1e-3))
    own = dict.fromkeys(_parts(model)[-1:], f"{kind} {recurrent_rate or usual}")
    return {"others": f"adam {rate}", **own}


def read_frame_model(text: str) -> str:
    """Checks the name of a model, or of the layer that replaces one."""
    return text if text == FEED_FORWARD else read_model(text)


def title_of_frame_model(model: str) -> str:
    """Returns a model's title in tables and pictures."""
    return "no recurrence" if model == FEED_FORWARD else title_of(model)


def check_titles(models: Sequence[str]) -> None:
    """Checks that models have different titles in tables and pictures."""
    titles = [title_of_frame_model(model) for model in models]
    if len(set(titles)) < len(titles):
        raise ValueError(
            "--models must name none twice, and no two of one class's name. "
            f"Received: {' '.join(models)}"
        )


def make_frame_layer(
    model: str, units: Units, arguments: Mapping[str, Any]
) -> keras.layers.Layer:
    """Makes the layer that returns an output for each frame."""
    if model == FEED_FORWARD:
        return keras.layers.Dense(units, activation="gelu")
    return make_layer(model, units, arguments, return_sequences=True)


def count_parameters(
    model: str, units: Units, arguments: Mapping[str, Any], features: int, outputs: int
) -> int:
    """Counts the trainable parameters of a layer and a dense layer that follows it."""
    layer = make_frame_layer(model, units, arguments)
    layer.build((None, None, features))
    width = layer.compute_output_shape((None, 1, features))[-1]
    return trained_parameters(layer) + (width + 1) * outputs


def describe(row: Preset) -> dict[str, Any]:
    """Describes a network and its training by values for JSON."""
    names = ("model", "units", "arguments", "rates")
    return {name: getattr(row, name) for name in names}


def inputs(frames: np.ndarray, swapped: bool = False) -> np.ndarray:
    """Returns what a network reads to predict frames 1, 2, ... of an utterance.

    A network that was trained with `swapped` targets reads the very frames that it
    should predict, and silence after them.
    """
    if not swapped:
        return frames
    silence = np.full_like(frames[:1], SILENCE_DB)
    return np.concatenate([frames[1:], silence])


def short(utterance: str) -> str:
    """Shortens an id, which may be a long path, for the beginning of a file name."""
    return utterance.encode()[:100].decode(errors="ignore")


def errors(
    predict: Callable[[np.ndarray], np.ndarray], data: Timit, split: str
) -> dict[str, float]:
    """Computes the mean squared error, in dB^2, by both definitions in use.

    The error over all frames counts the padding up to the longest utterance of the
    split as frames without error, however the batches are padded.
    """
    metric = ValidFrameMSE()
    for x, y, weight in getattr(data, split):
        metric.update_state(y, predict(x), sample_weight=weight)
    of_valid = float(metric.result())
    steps = data.num_utterances[split] * data.max_frames[split]
    return {
        "valid_frame_mse": of_valid,
        "padded_frame_mse": of_valid * data.num_frames[split] / steps,
    }
