"""The settings of networks that predict the next frame of speech, and their errors."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.building import closest_units
from experiments.layers import Units, kind_of, make_layer, trained_parameters
from experiments.presets import Preset, find
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

    Raises:
        ValueError: If there is no such model, a number is out of its range, or none
            of the models has variables for `recurrent_rate`.

    Example:
    >>> [row.units for row in matched_rows(["scornn", "lstm"], 224)]
    [224, 84]
    """
    if recurrent_rate is not None and not any(kind_of(model).parts for model in models):
        raise ValueError(
            "`recurrent_rate` is for free variables of a recurrent matrix, which "
            f"{', '.join(models)} lacks. Received: recurrent_rate={recurrent_rate}"
        )
    arguments = ARGUMENTS | {"scornn": {"negative_ones": negative_ones}}
    shape = {"features": NUM_BINS, "outputs": NUM_BINS}
    parameters = count_parameters("scornn", units, arguments["scornn"], **shape)

    def row(model: str) -> Preset:
        own = arguments.get(model, {})
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
    own = dict.fromkeys(kind_of(model).parts[-1:], f"{kind} {recurrent_rate or usual}")
    return {"others": f"adam {rate}", **own}


def count_parameters(
    model: str, units: Units, arguments: Mapping[str, Any], features: int, outputs: int
) -> int:
    """Counts the trained parameters of a recurrent layer and a dense one after it.

    Example:
    >>> count_parameters("scornn", 224, {}, features=129, outputs=129)
    83121
    """
    layer = make_layer(model, units, arguments)
    layer.build((None, None, features))
    width = layer.compute_output_shape((None, 1, features))[-1]
    return trained_parameters(layer) + (width + 1) * outputs


def describe(row: Preset) -> dict[str, Any]:
    """Says what a network and its training are, as JSON can hold it.

    Example:
    >>> describe(matched_rows(["lstm"], 224)[0])["rates"]
    {'others': 'adam 0.001 clip 1'}
    """
    names = ("model", "units", "arguments", "rates")
    return {name: getattr(row, name) for name in names}


def mean_frame(data: Any) -> np.ndarray:
    """Averages the valid frames, in dB, of batches `(x, y, sample_weight)`.

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

    Example:
    >>> inputs(np.zeros((5, 129)), swapped=True)[:, 0]
    array([  0.,   0.,   0.,   0., -50.])
    """
    if not swapped:
        return frames
    silence = np.full_like(frames[:1], SILENCE_DB)
    return np.concatenate([frames[1:], silence])


def errors(predict: Callable[[np.ndarray], np.ndarray], data: Any) -> dict[str, float]:
    """Measures the mean squared error, in dB^2, under both definitions in use.

    Args:
        predict: Gives the frames that follow those of a batch.
        data: Batches as for `mean_frame`.

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
