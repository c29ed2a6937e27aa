"""Writes the stub from which editors and type checkers learn the arguments of cells.

A cell passes on its `**kwargs`, and a layer all of its arguments, which static analysis
cannot follow. The stub therefore spells out the run-time signatures of both, including
the arguments of every Keras layer. Each class in the stub is a subclass of the class in
the source, from which it has everything else.
"""

import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import keras

from keras_ortho import cells, configs
from keras_ortho.cells import arguments

STUB = Path(cells.__file__).with_suffix(".pyi")
# Taken from the source: their subclasses declare the arguments.
BASES = (cells.RecurrentCell, cells.RecurrentLayer)


def stub() -> str:
    """Makes the stub of `keras_ortho.cells`.

    Returns:
        The text of the stub.
    """
    written = [
        cls for _, cls in inspect.getmembers(cells, inspect.isclass) if cls not in BASES
    ]
    return "\n".join(
        [
            "# Written by `make stubs`.",
            "from typing import Any, ClassVar",
            "",
            "from keras_ortho.cells import (",
            *(f"    {module}," for module in sorted({_module(cls) for cls in written})),
            ")",
            *(
                f"from {base.__module__} import {base.__name__} as {base.__name__}"
                for base in BASES
            ),
            "",
            "# fmt: off",
            *map(_class, written),
            "",
        ]
    )


def _module(cls: type) -> str:
    return cls.__module__.rpartition(".")[2]


def _class(cls: type) -> str:
    lines = ["", f"class {cls.__name__}({_module(cls)}.{cls.__name__}):"]
    if issubclass(cls, cells.RecurrentLayer):
        # Without a type, mypy wants the cells of subclasses to take the same arguments.
        cell = f"{_module(cls)}.{cls.cell_class.__name__}"
        lines += [f"    cell_class: ClassVar[type[{cell}]]"]
    text = f"def __init__(self, {str(_signature(cls))[1:]} -> None: ..."
    text = text.replace("'", '"').replace("Ellipsis", "...")
    # Breaks lines only between parameters.
    text = re.sub(r" (?!\w+:|\*,)", "\0", text)
    wrapped = textwrap.wrap(text, 84, subsequent_indent="    ", break_long_words=False)
    lines += ["    " + line.replace("\0", " ") for line in wrapped]
    return "\n".join(lines)


def _signature(cls: type) -> inspect.Signature:
    own = inspect.signature(cls).parameters.values()
    every = arguments.join(list(own), configs.declared(keras.layers.Layer))
    return inspect.Signature(
        [_shown(p) for p in every.parameters.values() if p.kind is not p.VAR_KEYWORD]
    )


def _shown(parameter: inspect.Parameter) -> inspect.Parameter:
    """Adds a type, which Keras's parameters lack, and hides a default object."""
    default, annotation = parameter.default, parameter.annotation
    if annotation is parameter.empty:
        annotation = bool if isinstance(default, bool) else Any
    if not isinstance(default, str | int | float | type | None):
        default = ...
    return parameter.replace(annotation=annotation, default=default)


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
