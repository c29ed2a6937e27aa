"""Networks that predict the next frame of speech, and their settings."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from experiments.layers import Units, make_layer
from experiments.matching import closest_units, count_parameters
from experiments.optimizers import make_optimizer
from experiments.presets import Preset, find
from keras_ortho import losses
from keras_ortho.audio import NUM_BINS, SILENCE_DB
from keras_ortho.metrics import PaddedFrameMSE, ValidFrameMSE

EPOCHS = 200
BATCH_SIZE = 28  # The papers', for all models.
STOCK = ("lstm", "gru", "rnn", "irnn")
ARGUMENTS: dict[str, dict[str, Any]] = {
    "enrnn": {"negative_ones": 1.0, "coupling": False},
    "goru": {"style": "tunable", "capacity": 2},
}
# Rules of the recurrent matrix. ENRNN's authors have Adam 1e-4 for it in all of their
# experiments with speech and text.
RECURRENT = {"enrnn": ("adam", 1e-4), "full-urnn": ("stiefel", 1e-3)}


def paper_rows(models: Sequence[str], units: Sequence[Units] | None) -> list[Preset]:
    """Finds the papers' settings.

    Args:
        models: Names of the layers.
        units: The size of each, or `None` for the first row of each.

    Returns:
        A row for each model.

    Raises:
        ValueError: If there is no such row, or not one size for each model.

    Example:
    >>> [row.units for row in paper_rows(["scornn", "lstm"], [425, 158])]
    [425, 158]
    """
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
    negative_ones: float = 0.1,
    rate: float = 1e-3,
    recurrent_rate: float | None = None,
) -> list[Preset]:
    """Makes settings of networks with as many parameters as that of a scoRNN.

    The optimizer is Adam. The free variables of the recurrent matrix have another:
    RMSprop; for ENRNN Adam of a smaller rate; the matrix of the full-capacity uRNN
    is trained along the unitary ones. For Keras's own layers gradients are clipped to
    1. ENRNN has negative ones alone and no coupling, as in its paper; GORU two layers
    of rotations, so that its size can be matched.

    Args:
        models: Names of the layers.
        units: Units of scoRNN.
        negative_ones: Of scoRNN. Default: 0.1.
        rate: Rate of Adam. Default: 1e-3.
        recurrent_rate: Rate for the recurrent matrix. Default: `None`, 1e-3, and
            1e-4 for ENRNN.

    Returns:
        A row for each model.

    Raises:
        ValueError: If there is no such model, a number is out of its range, or none
            of the models has variables for `recurrent_rate`.

    Example:
    >>> [row.units for row in matched_rows(["scornn", "lstm"], 224)]
    [224, 84]
    """
    if recurrent_rate is not None and set(models) <= set(STOCK):
        raise ValueError(
            "`recurrent_rate` is of free variables of a recurrent matrix, which "
            f"{', '.join(models)} has not. Received: recurrent_rate={recurrent_rate}"
        )
    arguments = ARGUMENTS | {"scornn": {"negative_ones": negative_ones}}
    shape = {"features": NUM_BINS, "outputs": NUM_BINS}
    parameters = count_parameters("scornn", units, arguments["scornn"], **shape)

    def row(model: str) -> Preset:
        own = arguments.get(model, {})
        found: Units = units
        if model != "scornn":
            found = closest_units(model, parameters, own, **shape)
        return Preset(
            "timit",
            model,
            found,
            _rates(model, rate, recurrent_rate),
            source=f"as many parameters as scoRNN with {units} units",
            arguments=own,
            batch_size=BATCH_SIZE,
            epochs=EPOCHS,
        )

    return [row(model) for model in models]


def _rates(model: str, rate: float, recurrent_rate: float | None) -> dict[str, str]:
    if model in STOCK:
        return {"others": f"adam {rate} clip 1"}
    kind, usual = RECURRENT.get(model, ("rmsprop", 1e-3))
    part = "unitary" if kind == "stiefel" else "recurrent"
    return {"others": f"adam {rate}", part: f"{kind} {recurrent_rate or usual}"}


def network(row: Preset, mean: np.ndarray | None = None) -> keras.Model:
    """Makes the network that predicts the next frame, from its settings.

    Args:
        row: The settings.
        mean: Mean of the frames to predict, of shape `(129,)`: the network starts
            from it. Default: `None`, 0 dB.

    Returns:
        The model, built and compiled.

    Example:
    >>> (row,) = matched_rows(["scornn"], 8)
    >>> network(row)(np.zeros((2, 10, 129))).shape
    (2, 10, 129)
    """
    bias = keras.initializers.Constant(0.0 if mean is None else mean)
    layer = make_layer(row.model, row.units, row.arguments, return_sequences=True)
    model = keras.Sequential(
        [
            keras.Input((None, NUM_BINS)),
            layer,
            keras.layers.Dense(NUM_BINS, bias_initializer=bias),
        ]
    )
    model.compile(
        make_optimizer(row.rates),
        losses.ValidFrameMSE(),
        weighted_metrics=[ValidFrameMSE()],
    )
    return model


def describe(row: Preset) -> dict[str, Any]:
    """Says what a network and its training are, as JSON can hold it.

    Args:
        row: The settings.

    Returns:
        Model, units, arguments of the layer, and rules of the optimizers.

    Example:
    >>> describe(matched_rows(["lstm"], 224)[0])["rates"]
    {'others': 'adam 0.001 clip 1'}
    """
    return {
        name: getattr(row, name) for name in ("model", "units", "arguments", "rates")
    }


def mean_frame(data: Any) -> np.ndarray:
    """Averages the valid frames that are to be predicted.

    Args:
        data: Batches `(x, y, sample_weight)`, as `keras_ortho.tasks.timit` gives them.

    Returns:
        The mean, of shape `(129,)`, in dB.

    Example:
    >>> batch = np.zeros((2, 5, 129)), np.ones((2, 5, 129)), np.ones((2, 5))
    >>> float(mean_frame([batch])[0])
    1.0
    """
    total, frames = np.zeros(NUM_BINS), 0.0
    for _, y, weight in data:
        total += np.einsum("btf,bt->f", y, weight, dtype="float64")
        frames += float(np.sum(weight))
    return total / frames


def inputs(frames: np.ndarray, swapped: bool = False) -> np.ndarray:
    """Gives what a network reads to predict frames 1, 2, ... of an utterance.

    Args:
        frames: All frames, of shape `(frames, 129)`, in dB.
        swapped: Whether the network was trained with inputs and targets exchanged:
            then it reads the very frames that it should predict, and after them
            silence, as in its training. Default: `False`.

    Returns:
        The inputs, of the same shape.

    Example:
    >>> inputs(np.zeros((5, 129)), swapped=True)[:, 0]
    array([  0.,   0.,   0.,   0., -50.])
    """
    if not swapped:
        return frames
    silence = np.full_like(frames[:1], SILENCE_DB)
    return np.concatenate([frames[1:], silence])


def errors(predict: Callable[[np.ndarray], np.ndarray], data: Any) -> dict[str, float]:
    """Measures the mean squared error of predictions under both definitions in use.

    Args:
        predict: Gives the frames that follow those of a batch.
        data: Batches as for `mean_frame`.

    Returns:
        `"valid_frame_mse"` and `"padded_frame_mse"`, in dB^2.

    Example:
    >>> batch = np.zeros((2, 5, 129)), np.ones((2, 5, 129)), np.ones((2, 5))
    >>> errors(lambda x: x, [batch])["valid_frame_mse"]
    1.0
    """
    metrics: list[Any] = [ValidFrameMSE(), PaddedFrameMSE()]
    for x, y, weight in data:
        for metric in metrics:
            metric.update_state(y, predict(x), sample_weight=weight)
    return {metric.name: float(metric.result()) for metric in metrics}
