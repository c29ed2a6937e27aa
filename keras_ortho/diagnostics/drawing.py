"""What the figures share: axes, legends, and how they are saved."""

import os
from collections.abc import Sized
from typing import Any

from keras_ortho.extras import require
from keras_ortho.files import replacing


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
    """Writes a figure as PNG, aside first."""
    with replacing(path) as aside:
        figure.savefig(aside, format="png", dpi=120)
