"""The recurrent layers that an experiment chooses from, by name."""

import functools
import inspect
from collections.abc import Callable, Mapping
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

LAYERS: dict[str, Callable[..., keras.layers.Layer]] = {
    "scornn": ScoRNN,
    "scurnn": ScuRNN,
    "enrnn": ENRNN,
    "antisymmetric": AntisymmetricRNN,
    "antisymmetric-gated": functools.partial(AntisymmetricRNN, gated=True),
    # With gates, by the number of parameters that the paper gives.
    "antisymmetric-ablation": functools.partial(
        AntisymmetricRNN, gated=True, antisymmetric=False
    ),
    "svdrnn": SVDRNN,
    "ornn": ORNN,
    "restricted-urnn": RestrictedURNN,
    "full-urnn": FullURNN,
    "eurnn": EURNN,
    "goru": GORU,
    "nnrnn": NNRNN,
    "factorized": FactorizedRNN,
    "lstm": lstm,
    "gru": keras.layers.GRU,
    "rnn": rnn,
    "irnn": irnn,
}
# What the baselines pass further arguments on to.
EXTENDED = {
    "lstm": keras.layers.LSTM,
    "rnn": keras.layers.SimpleRNN,
    "irnn": keras.layers.SimpleRNN,
}
# With complex units: the papers' runs have the modReLU of their authors' code.
COMPLEX = frozenset({"scurnn", "restricted-urnn", "full-urnn", "eurnn"})
# The parts of the variables that may have an optimizer of their own. Phases belong to
# the recurrent matrix, too, and have its optimizer unless they are given one.
PARTS_OF: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(LAYERS, ("recurrent",)),
    **dict.fromkeys(("scurnn", "restricted-urnn", "eurnn"), ("phases", "recurrent")),
    **dict.fromkeys(("antisymmetric-ablation", "lstm", "gru", "rnn", "irnn"), ()),
    "full-urnn": ("unitary",),
}
TITLES = {
    "scornn": "scoRNN",
    "scurnn": "scuRNN",
    "enrnn": "ENRNN",
    "antisymmetric": "AntisymmetricRNN",
    "antisymmetric-gated": "AntisymmetricRNN with gates",
    "antisymmetric-ablation": "unstructured ablation",
    "svdrnn": "svdRNN",
    "ornn": "oRNN",
    "restricted-urnn": "restricted-capacity uRNN",
    "full-urnn": "full-capacity uRNN",
    "eurnn": "EURNN",
    "goru": "GORU",
    "nnrnn": "nnRNN",
    "factorized": "factorized RNN",
    "lstm": "LSTM",
    "gru": "GRU",
    "rnn": "RNN",
    "irnn": "IRNN",
}


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
        kind = "a pair, long-term/short-term," if model == "enrnn" else "one number"
        raise ValueError(f"`units` of {model} must be {kind}. Received: {units}")
    sizes = units if isinstance(units, tuple) else (units,)
    layer = LAYERS[model]
    fixed = layer.keywords if isinstance(layer, functools.partial) else {}
    # The experiment's own matter.
    taken = {"kwargs", "units", "long_term_units", "short_term_units", *fixed}
    taken |= {"return_sequences", "return_state"}
    sources = [layer, EXTENDED[model]] if model in EXTENDED else [layer]
    own = {name for each in sources for name in inspect.signature(each).parameters}
    unknown = set(arguments or {}) - (own - taken)
    if unknown:
        raise ValueError(
            f"`arguments` of {model} must be some of {sorted(own - taken)}. "
            f"Received: {sorted(unknown)}"
        )
    usual = {"activation": "smoothed_modrelu"} if model in COMPLEX else {}
    return layer(*sizes, **{**usual, **(arguments or {}), **kwargs})


def trained_parameters(model: keras.layers.Layer) -> int:
    """Counts the trained parameters of a model or a layer, which is built.

    Example:
    >>> trained_parameters(keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]))
    8
    """
    return sum(int(np.prod(v.shape)) for v in model.trainable_variables)
