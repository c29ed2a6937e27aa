"""The recurrent layers that an experiment chooses from, by name."""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from keras_ortho import (
    ENRNN,
    EURNN,
    GORU,
    NNRNN,
    ORNN,
    SVDRNN,
    AntisymmetricRNN,
    FactorizedRNN,
    FullURNN,
    RestrictedURNN,
    ScoRNN,
    ScuRNN,
)
from keras_ortho.baselines import irnn, lstm, rnn

# One number of units, or ENRNN's long-term and short-term units.
Units = int | tuple[int, int]


@dataclass(frozen=True)
class Kind:
    """A recurrent layer to choose.

    Attributes:
        title: What pictures and tables call it.
        make: Makes it from its units and arguments.
        parts: The parts of its variables that may have an optimizer of their own.
            Phases belong to the recurrent matrix, too, and have its optimizer unless
            they are given one.
        extends: The layer of Keras that takes the arguments that `make` does not name.
    """

    title: str
    make: Callable[..., keras.layers.Layer]
    parts: tuple[str, ...] = ("recurrent",)
    extends: type[keras.layers.Layer] | None = None


_PHASES = ("phases", "recurrent")
_GATED = functools.partial(AntisymmetricRNN, gated=True)
# With gates, by the number of parameters that the paper gives.
_ABLATION = functools.partial(AntisymmetricRNN, gated=True, antisymmetric=False)
_SIMPLE = keras.layers.SimpleRNN

LAYERS = {
    "scornn": Kind("scoRNN", ScoRNN),
    "scurnn": Kind("scuRNN", ScuRNN, _PHASES),
    "enrnn": Kind("ENRNN", ENRNN),
    "antisymmetric": Kind("AntisymmetricRNN", AntisymmetricRNN),
    "antisymmetric-gated": Kind("AntisymmetricRNN with gates", _GATED),
    "antisymmetric-ablation": Kind("unstructured ablation", _ABLATION, ()),
    "svdrnn": Kind("svdRNN", SVDRNN),
    "ornn": Kind("oRNN", ORNN),
    "restricted-urnn": Kind("restricted-capacity uRNN", RestrictedURNN, _PHASES),
    "full-urnn": Kind("full-capacity uRNN", FullURNN, ("unitary",)),
    "eurnn": Kind("EURNN", EURNN, _PHASES),
    "goru": Kind("GORU", GORU),
    "nnrnn": Kind("nnRNN", NNRNN),
    "factorized": Kind("factorized RNN", FactorizedRNN),
    "lstm": Kind("LSTM", lstm, (), keras.layers.LSTM),
    "gru": Kind("GRU", keras.layers.GRU, ()),
    "rnn": Kind("RNN", rnn, (), _SIMPLE),
    "irnn": Kind("IRNN", irnn, (), _SIMPLE),
}
# With complex units: the papers' runs have the modReLU of their authors' code.
COMPLEX = frozenset({"scurnn", "restricted-urnn", "full-urnn", "eurnn"})


def make_layer(
    model: str, units: Units, arguments: Mapping[str, Any] | None = None, **kwargs: Any
) -> keras.layers.Layer:
    """Makes a recurrent layer.

    Args:
        model: One of `LAYERS`.
        units: Number of units; for `"enrnn"` a pair of the long-term and the
            short-term ones.
        arguments: Arguments of the layer besides, as a user may choose them. Default:
            none.
        **kwargs: Those of the experiment, such as `return_sequences`.

    Raises:
        ValueError: If there is no such model, it has no such argument or that is
            fixed, or `units` is a pair where it takes one number, or the other way
            round.

    Example:
    >>> make_layer("scornn", 170, {"negative_ones": 85}).units
    170
    """
    if model not in LAYERS:
        raise ValueError(f"`model` must be one of {list(LAYERS)}. Received: {model!r}")
    if isinstance(units, tuple) != (model == "enrnn"):
        wanted = "a pair, long-term/short-term," if model == "enrnn" else "one number"
        raise ValueError(f"`units` of {model} must be {wanted}. Received: {units}")
    sizes = units if isinstance(units, tuple) else (units,)
    kind = LAYERS[model]
    fixed = kind.make.keywords if isinstance(kind.make, functools.partial) else {}
    # The experiment's own matter.
    taken = {"kwargs", "units", "long_term_units", "short_term_units", *fixed}
    taken |= {"return_sequences", "return_state"}
    makers: list[Any] = [kind.make, *filter(None, [kind.extends])]
    own = {name for each in makers for name in inspect.signature(each).parameters}
    unknown = set(arguments or {}) - (own - taken)
    if unknown:
        raise ValueError(
            f"`arguments` of {model} must be some of {sorted(own - taken)}. "
            f"Received: {sorted(unknown)}"
        )
    usual = {"activation": "smoothed_modrelu"} if model in COMPLEX else {}
    return kind.make(*sizes, **{**usual, **(arguments or {}), **kwargs})


def trained_parameters(model: keras.layers.Layer) -> int:
    """Counts the trained parameters of a model or a layer, which is built.

    Example:
    >>> trained_parameters(keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]))
    8
    """
    return sum(int(np.prod(v.shape)) for v in model.trainable_variables)
