"""A user's own recurrent layers and cells, from a module or a file."""

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import keras


def is_own(model: str) -> bool:
    """Whether a model is named by the location of its class."""
    return ":" in model


@functools.cache
def find_maker(model: str) -> Callable[..., Any]:
    """Finds the class or function that makes a layer or a cell."""
    where, _, name = model.rpartition(":")
    if not where or not name:
        raise ValueError(
            f"`model` must be package.module:Name or file.py:Name. Received: {model!r}"
        )
    module = _from_file(Path(where)) if where.endswith(".py") else _from_path(where)
    maker = getattr(module, name, None)
    if not callable(maker):
        raise ValueError(
            f"`model`: {where} has no class or function {name}. Received: {model!r}"
        )
    return maker


def _from_path(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # Not if the module exists and fails to import another.
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise ValueError(
                f"`model`: there is no module {name} on the path or in {here}. "
                f"Received: {name!r}"
            ) from error
        raise


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ValueError(f"`model`: there is no such file. Received: {str(path)!r}")
    known = sys.modules.get(path.stem)
    if known is not None:
        if Path(getattr(known, "__file__", None) or "").resolve() == path.resolve():
            return known
        raise ValueError(
            f"`model`: another module is named {path.stem}. Rename the file. "
            f"Received: {str(path)!r}"
        )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None  # True of a path that ends in .py.
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Objects that it defines are pickled and saved by the name of their module.
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise
    return module


def make_own(
    maker: Callable[..., Any],
    *sizes: int,
    return_sequences: bool = False,
    return_state: bool = False,
    **arguments: Any,
) -> keras.layers.Layer:
    """Makes a recurrent layer; a cell is wrapped in `keras.layers.RNN`."""
    returns = {"return_sequences": return_sequences, "return_state": return_state}
    made = maker(*sizes, **arguments)
    if not isinstance(made, keras.layers.Layer):
        raise ValueError(f"`model` must make a Keras layer or cell. Received: {made}")
    if not hasattr(made, "return_sequences"):
        if not hasattr(made, "state_size"):
            raise ValueError(
                "`model` must make a recurrent layer, which has `return_sequences`, "
                f"or a cell, which has `state_size`. Received: {made}"
            )
        made = keras.layers.RNN(made, **returns)
    elif any(returns.values()):
        made = maker(*sizes, **arguments, **returns)
    try:
        made.get_config()
    except NotImplementedError as error:
        # Otherwise this error would come only when the trained network is saved.
        raise ValueError(
            f"`model` must make a layer that can be saved: {error} Received: {made}"
        ) from error
    return made
