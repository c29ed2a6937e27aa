"""What the figures share: axes, legends, and how they are saved."""

import os
import reprlib
from collections.abc import Mapping, Sized
from pathlib import Path
from typing import Any

from keras_ortho.extras import require
from keras_ortho.files import replacing


def check_figure(path: str | os.PathLike[str], argument: str, values: Any) -> None:
    """Checks what a figure is made of, and where it goes, before it is drawn.

    Args:
        path: PNG file to write.
        argument: Name of the argument that gave the values.
        values: What is drawn, by name.

    Raises:
        ValueError: If `path` has another suffix, or `values` is no dictionary or empty.
    """
    if not isinstance(values, Mapping) or not values:
        raise ValueError(
            f"`{argument}` must be a dictionary, with a name for each thing to draw. "
            f"Received: {argument}={reprlib.repr(values)}"
        )
    if Path(path).suffix != ".png":
        raise ValueError(
            f"`path` must be a file with the suffix .png. Received: path={path}"
        )


def subplots(rows: int, size: tuple[float, float], columns: int = 1) -> tuple[Any, Any]:
    """Makes a figure of inches `size`, and gives its axes one after the other."""
    # Without pyplot, which keeps every figure and picks a screen to show it on.
    figure = require("matplotlib.figure", extra="plot").Figure(
        figsize=size, layout="constrained"
    )
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey="row")
    return figure, axes.ravel()


def inches_beside(entries: Sized) -> int:
    """Inches for a legend beside the axes, where it would fill them: else none."""
    return 2 if len(entries) > 6 else 0


def add_legend(axis: Any, entries: Sized) -> None:
    """Adds a legend: beside the axes where it would fill them, else within."""
    if inches_beside(entries):
        axis.legend(loc="upper left", bbox_to_anchor=(1, 1))
    else:
        # Named, as the default warns where the search for it takes a second.
        axis.legend(loc="best")


def save(figure: Any, path: str | os.PathLike[str]) -> None:
    """Writes a figure as PNG, aside first, and makes the folder that it goes to."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as aside:
        figure.savefig(aside, format="png", dpi=120)
