"""A user's own recurrent layers and cells, from a module or a file."""

import functools
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras


def is_own(model: str) -> bool:
    """Whether a model is named by the location of its class."""
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
