"""Helpers of the figures: axes, legends and saving."""

import os
import reprlib
from collections.abc import Mapping, Sized
from pathlib import Path
from typing import Any

from keras_ortho.extras import require
from keras_ortho.files import replacing


def check_figure(path: str | os.PathLike[str], argument: str, values: Any) -> None:
    """Checks the data and path of a figure before it is drawn.

    Args:
        path: PNG file to write.
        argument: Name of the argument that `values` was passed as.
        values: Dictionary of the data to draw, by name.

    Raises:
        ValueError: If `path` does not end in `.png`, or `values` is not a dictionary
            or is empty.
    """
    if not isinstance(values, Mapping) or not values:
        raise ValueError(
            f"`{argument}` must be a dictionary from names to what is drawn. Received: "
            f"{argument}={reprlib.repr(values)}"
        )
    if Path(path).suffix != ".png":
        raise ValueError(
            f"`path` must be a file with the suffix .png. Received: path={path}"
        )


def subplots(rows: int, size: tuple[float, float], columns: int = 1) -> tuple[Any, Any]:
    """Creates a figure of `size` in inches, and returns it and its axes, flattened."""
    # Without pyplot, which keeps every figure and chooses a display backend.
    figure = require("matplotlib.figure", extra="plot").Figure(
        figsize=size, layout="constrained"
    )
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey="row")
    return figure, axes.ravel()


def inches_beside(entries: Sized) -> int:
    """Returns the width of a legend beside the axes in inches, 0 if it fits inside."""
    return 2 if len(entries) > 6 else 0


def add_legend(axis: Any, entries: Sized) -> None:
    """Adds a legend, inside the axes if it fits, otherwise beside them."""
    if inches_beside(entries):
        axis.legend(loc="upper left", bbox_to_anchor=(1, 1))
    else:
        # The default is also "best", but warns if the search takes over a second.
        axis.legend(loc="best")


def save(figure: Any, path: str | os.PathLike[str]) -> None:
    """Writes a figure as PNG via a temporary file, and creates missing folders."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as aside:
        figure.savefig(aside, format="png", dpi=120)
