"""The recurrent layers that an experiment selects by name."""

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from experiments.optimizers import PARTS, part_of
from experiments.own_layers import find_maker, is_own, make_own
from keras_ortho import GORU, AntisymmetricRNN, RecurrentLayer, cells
from keras_ortho.architectures import ARCHITECTURES
from keras_ortho.baselines import irnn, lstm, rnn
from keras_ortho.cells.layer import LayerArguments

# One number of units, or ENRNN's long-term and short-term units.
Units = int | tuple[int, int]
# Units of a layer that is made for inspection: few, and divisible into heads or blocks.
_TRIAL = 16


@dataclass(frozen=True)
class Kind:
    """A recurrent layer that can be selected.

    Attributes:
        title: Name in pictures and tables.
        make: Makes the layer from its units and arguments.
        extends: The class of layers that takes the arguments that `make` does not name.
    """

    title: str
    make: Callable[..., keras.layers.Layer]
    extends: type[keras.layers.Layer] | None = None

    @property
    def counts(self) -> list[str]:
        """Names of the required arguments of `make` for units, or of its first."""
        arguments = inspect.signature(self.make).parameters
        units = [
            name
            for name, argument in arguments.items()
            if name.endswith("units") and argument.default is argument.empty
        ]
        return units or list(arguments)[:1]


def _of_its_paper(title: str, layer: Any, **fixed: Any) -> Kind:
    """Describes a layer with its paper's settings and fixed arguments."""
    make: Any = functools.partial(layer.from_paper, **fixed)
    make.__signature__ = inspect.signature(functools.partial(layer, **fixed))
    return Kind(title, make, RecurrentLayer)


_SIMPLE = keras.layers.SimpleRNN
# Layers that `--model` does not call by their file's name, and layers that the papers
# do not call by their class's name.
_NAMES = {"urnn": "restricted-urnn"}
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
LAYERS = {
    _NAMES.get(file, file.replace("_", "-")): _of_its_paper(
        _TITLES.get(name, name), getattr(cells, name)
    )
    for name, file in ARCHITECTURES.items()
} | {
    "antisymmetric-gated": _of_its_paper(
        "AntisymmetricRNN with gates", AntisymmetricRNN, gated=True
    ),
    # With gates, which gives the paper's number of parameters.
    "antisymmetric-ablation": _of_its_paper(
        "unstructured ablation", AntisymmetricRNN, gated=True, antisymmetric=False
    ),
    # As it comes: of the paper's layer, the gates are half shut.
    "goru": Kind("GORU", GORU, RecurrentLayer),
    "goru-paper": _of_its_paper("GORU of the paper", GORU),
    "lstm": Kind("LSTM", lstm, keras.layers.LSTM),
    "gru": Kind("GRU", keras.layers.GRU),
    "rnn": Kind("RNN", rnn, _SIMPLE),
    "irnn": Kind("IRNN", irnn, _SIMPLE),
}


def kind_of(model: str) -> Kind:
    """Finds a recurrent layer by name."""
    if is_own(model):
        maker = find_maker(model)
        make: Any = functools.partial(make_own, maker)
        make.__signature__ = inspect.signature(maker)
        return Kind(title_of(model), make)
    if model not in LAYERS:
        raise ValueError(
            f"`model` must be one of {list(LAYERS)}, or package.module:Name or "
            f"file.py:Name of a layer or a cell of your own. Received: {model!r}"
        )
    return LAYERS[model]


def title_of(model: str) -> str:
    """Returns a model's title; does not import a user's own module."""
    return model.rpartition(":")[2] if is_own(model) else kind_of(model).title


def allowed_size(size: int, arguments: Mapping[str, Any]) -> int:
    """Returns the smallest size from `size` on that a layer's arguments allow.

    It is a multiple of the number of heads, and at least the number of reflections or
    negative ones.
    """

    def number(name: str) -> int:
        # A fraction of the units sets no bound; the layer rejects other values.
        given = arguments.get(name)
        return max(1, given) if isinstance(given, int) else 1

    least = max(size, number("reflections"), number("negative_ones"))
    return math.ceil(least / number("heads")) * number("heads")


def units_text(units: Units | list[int]) -> str:
    """Formats units as `--units` takes them."""
    return "/".join(map(str, units)) if isinstance(units, tuple | list) else str(units)


def trial_units(model: str, arguments: Mapping[str, Any] | None = None) -> Units:
    """Returns a small number of units that a model accepts with some arguments."""
    size = allowed_size(_TRIAL, arguments or {})
    return size if len(kind_of(model).counts) == 1 else (size, size)


def make_layer(
    model: str, units: Units, arguments: Mapping[str, Any] | None = None, **kwargs: Any
) -> keras.layers.Layer:
    """Makes a recurrent layer; one of this package has its paper's settings."""
    kind, sizes = kind_of(model), units if isinstance(units, tuple) else (units,)
    if len(sizes) != len(kind.counts):
        pair = f"a pair of {' and '.join(kind.counts)}"
        wanted = "one number" if len(kind.counts) == 1 else pair
        raise ValueError(f"`units` of {model} must be {wanted}. Received: {units}")
    fixed = kind.make.keywords if isinstance(kind.make, functools.partial) else {}
    # Set by the experiment.
    taken = {"kwargs", *kind.counts, *fixed, "return_sequences", "return_state"}
    makers: list[Any] = [kind.make, *filter(None, [kind.extends])]
    own = {name for each in makers for name in inspect.signature(each).parameters}
    if kind.extends is RecurrentLayer:
        own |= set(LayerArguments.__annotations__)
    unknown = set(arguments or {}) - (own - taken)
    # The arguments that a user's own class passes on by `**kwargs` are unknown here.
    if unknown and not (is_own(model) and "kwargs" in own and not unknown & taken):
        raise ValueError(
            f"`arguments` of {model} must be some of {sorted(own - taken)}. "
            f"Received: {sorted(unknown)}"
        )
    given = {**(arguments or {}), **kwargs}
    return kind.make(*sizes, **given)


def parts_of(
    model: str, units: Units | None = None, arguments: Mapping[str, Any] | None = None
) -> tuple[str, ...]:
    """Lists the parts of a layer's variables that may have their own optimizer.

    Phases also belong to the recurrent matrix, and use its optimizer unless they are
    given their own.
    """
    if not is_own(model):  # Any units do; a user's own layer may reject some.
        units = arguments = None
    layer = make_layer(model, units or trial_units(model, arguments), arguments)
    layer.build((None, 1, 1))
    found = {part_of(variable) for variable in layer.trainable_variables}
    return tuple(part for part in PARTS if part in found)


def trained_parameters(model: keras.layers.Layer) -> int:
    """Counts the trainable parameters of a built model or layer."""
    return sum(int(np.prod(v.shape)) for v in model.trainable_variables)
