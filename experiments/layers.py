"""The recurrent layers that an experiment selects by name, and networks of them."""

import functools
import importlib
import math
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import keras
import numpy as np

from experiments.optimizers import part_of
from keras_ortho import GORU, AntisymmetricRNN, cells
from keras_ortho.architectures import ARCHITECTURES
from keras_ortho.baselines import closest_size, irnn, lstm, rnn

# One number of units, or ENRNN's long-term and short-term units.
Units = int | tuple[int, int]


class Kind(NamedTuple):
    """A recurrent layer: its name in pictures and tables, and what makes it."""

    title: str
    make: Callable[..., keras.layers.Layer]


# Layers that the papers do not call by their class's name.
_TITLES = {
    "ScoRNN": "scoRNN",
    "ScuRNN": "scuRNN",
    "SVDRNN": "svdRNN",
    "ORNN": "oRNN",
    "RestrictedURNN": "restricted-capacity uRNN",
    "FullURNN": "full-capacity uRNN",
    "NNRNN": "nnRNN",
    "FactorizedRNN": "factorized RNN",
}
_GATED = functools.partial(AntisymmetricRNN.from_paper, gated=True)
# Those of this package have their papers' settings.
LAYERS = {
    {"urnn": "restricted-urnn"}.get(file, file.replace("_", "-")): Kind(
        _TITLES.get(name, name), getattr(cells, name).from_paper
    )
    for name, file in ARCHITECTURES.items()
} | {
    "antisymmetric-gated": Kind("AntisymmetricRNN with gates", _GATED),
    # With gates, which gives the paper's number of parameters.
    "antisymmetric-ablation": Kind(
        "unstructured ablation", functools.partial(_GATED, antisymmetric=False)
    ),
    # As it comes: of the paper's layer, the gates are half shut.
    "goru": Kind("GORU", GORU),
    "goru-paper": Kind("GORU of the paper", GORU.from_paper),
    "lstm": Kind("LSTM", lstm),
    "gru": Kind("GRU", keras.layers.GRU),
    "rnn": Kind("RNN", rnn),
    "irnn": Kind("IRNN", irnn),
}
# Sizes of units, for layers whose units are not the size itself.
_UNITS: dict[str, Callable[[int], Units]] = {
    # In the ratio 374 to 94, as in the dissertation's network for speech.
    "enrnn": lambda size: (size, max(1, round(size * 94 / 374))),
    "eurnn": lambda size: 2 * size,
    # As the FFT style needs them.
    "goru-paper": lambda size: 2 ** max(1, (size - 1).bit_length()),
}


def kind_of(model: str) -> Kind:
    """Finds a recurrent layer by name."""
    if is_own(model):
        return Kind(title_of(model), own_maker(model))
    if model not in LAYERS:
        raise ValueError(
            f"`model` must be one of {list(LAYERS)}, or package.module:Name or "
            f"file.py:Name of a layer or a cell of your own. Received: {model!r}"
        )
    return LAYERS[model]


def is_own(model: str) -> bool:
    """Whether a model is the location of a user's own class."""
    return ":" in model


@functools.cache
def own_maker(model: str) -> Callable[..., keras.layers.Layer]:
    """Finds what makes a layer: a class or a function of layers, or one of cells."""
    where, _, name = model.rpartition(":")
    path = Path(where) if where.endswith(".py") else None
    # Last, so that no module is found there instead of an installed one.
    sys.path.append(str(path.resolve().parent if path else Path.cwd()))
    module = importlib.import_module(path.stem if path else where)
    found = Path(getattr(module, "__file__", None) or "").resolve()
    if path and found != path.resolve():
        raise ValueError(
            f"`model`: another module is named {path.stem}. Rename the file. "
            f"Received: {model!r}"
        )
    maker = getattr(module, name, None)
    if not callable(maker):
        raise ValueError(
            f"`model`: {where} has no class or function {name}. Received: {model!r}"
        )
    return functools.partial(_make, maker)


def _make(
    maker: Callable[..., Any],
    *sizes: int,
    return_sequences: bool = False,
    return_state: bool = False,
    **arguments: Any,
) -> keras.layers.Layer:
    """Makes a recurrent layer; a cell is wrapped in `keras.layers.RNN`."""
    returns = {"return_sequences": return_sequences, "return_state": return_state}
    made = maker(*sizes, **arguments)
    if not hasattr(made, "return_sequences"):
        return keras.layers.RNN(made, **returns)
    return maker(*sizes, **arguments, **returns) if any(returns.values()) else made


def title_of(model: str) -> str:
    """Returns a model's title; does not import a user's own module."""
    return model.rpartition(":")[2] if is_own(model) else kind_of(model).title


def units_text(units: Units | list[int]) -> str:
    """Formats units as `--units` takes them."""
    return "/".join(map(str, units)) if isinstance(units, tuple | list) else str(units)


def make_layer(
    model: str, units: Units, arguments: Mapping[str, Any] | None = None, **kwargs: Any
) -> keras.layers.Layer:
    """Makes a recurrent layer; one of this package has its paper's settings."""
    kind = kind_of(model)
    if not is_own(model) and isinstance(units, tuple) != (model == "enrnn"):
        wanted = "a pair, as 96/64" if model == "enrnn" else "one number"
        raise ValueError(f"`units` of {model} must be {wanted}. Received: {units}")
    given = {**(arguments or {}), **kwargs}
    try:
        return kind.make(*(units if isinstance(units, tuple) else (units,)), **given)
    except TypeError as error:
        raise ValueError(
            f"`arguments` must be some of {model}: {error}. "
            f"Received: units={units}, arguments={given}"
        ) from error


def parts_of(model: str) -> set[str]:
    """Finds the parts of a layer's variables that may have their own optimizer."""
    layer = make_layer(model, (16, 16) if model == "enrnn" else 16)
    layer.build((None, 1, 1))
    return {part_of(each) for each in layer.trainable_variables} - {"others"}


def trained_parameters(model: keras.layers.Layer) -> int:
    """Counts the trainable parameters of a built model or layer."""
    return sum(int(np.prod(v.shape)) for v in model.trainable_variables)


def build(
    network: Callable[[keras.layers.Layer], keras.Model],
    settings: Namespace,
    **returns: Any,
) -> tuple[keras.Model, Any]:
    """Builds a network around its layer; returns also the settings that it has."""

    def sized(units: Units) -> keras.Model:
        keras.utils.set_random_seed(settings.seed)
        layer = make_layer(settings.model, units, settings.arguments, **returns)
        return network(layer)

    units = settings.units
    if settings.match:
        other = network(make_layer(*settings.matched, **returns))
        units = closest_units(
            settings.model,
            trained_parameters(other),
            lambda units: trained_parameters(sized(units)),
            settings.arguments,
        )
    model, rates = sized(units), settings.rates
    parts = {"others", *map(part_of, model.trainable_variables)}
    for part in {*settings.chosen} - parts:
        raise ValueError(
            f"--{part}-rate applies to variables that {settings.model} lacks. "
            f"Received: {rates[part]}"
        )
    own = {"units": units, "rates": {p: rates[p] for p in rates if p in parts}}
    return model, type(settings)(**{**vars(settings), **own})


def closest_units(
    model: str,
    parameters: int,
    count: Callable[[Any], int],
    arguments: Mapping[str, Any] = MappingProxyType({}),
) -> Units:
    """Finds the units that bring the number of parameters closest to a given one."""

    def bound(name: str) -> int:
        given = arguments.get(name)
        whole = given if isinstance(given, tuple) else (given,)
        # A fraction of the units sets no bound; the layer rejects other values.
        return max([1, *(value for value in whole if isinstance(value, int))])

    least, heads = max(bound("reflections"), bound("negative_ones")), bound("heads")
    # Rotations that are not in the FFT style need an even number.
    rotated = model == "goru-paper" and "parametrization" in arguments
    like = "eurnn" if rotated else model

    def units_of(size: int) -> Units:
        size = math.ceil(max(size, least) / heads) * heads
        return _UNITS.get(like, lambda size: size)(size)

    return units_of(closest_size(lambda size: count(units_of(size)), parameters))
