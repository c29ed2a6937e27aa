"""The figure of a two-dimensional state: trajectories over the vector field."""

import os
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_ortho.diagnostics.drawing import check_figure, save, subplots
from keras_ortho.diagnostics.plane import trajectories, vector_field

STARTS = ((-0.6, -0.6), (0.3, 0.7), (0.8, -0.4))


def plot_trajectories(
    path: str | os.PathLike[str],
    models: Mapping[str, keras.layers.Layer],
    starts: Any = STARTS,
    num_steps: int = 100,
    *,
    layer: str | None = None,
    extent: float = 1.0,
) -> None:
    """Draws trajectories of two-dimensional states over their vector fields.

    The inputs are zero.

    Args:
        path: PNG file to write.
        models: Dictionary of models or recurrent layers by name, as in `trajectories`.
        starts: Initial states, marked with stars: an array of shape `(starts, 2)`.
            Default: three points.
        num_steps: Number of steps. Default: 100.
        layer: Name of the recurrent layer in each model. Default: `None`, the only
            recurrent layer.
        extent: Half the length of each axis, which shows at least `-extent` to
            `extent`. Default: 1.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: As in `trajectories`; if `path` does not end in `.png`, or `models`
            is not a dictionary or is empty.

    Example:

    >>> layer = keras.layers.SimpleRNN(2)
    >>> layer.build((None, None, 1))
    >>> plot_trajectories("plane.png", {"SimpleRNN": layer}, num_steps=20)

    Reference:

    - [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), figure 1
    """
    check_figure(path, "models", models)
    draw_trajectories(
        path,
        {
            name: (
                trajectories(model, starts, num_steps, layer=layer),
                vector_field(model, grid(extent), layer=layer),
            )
            for name, model in models.items()
        },
        extent,
    )


def draw_trajectories(
    path: str | os.PathLike[str],
    motions: Mapping[str, tuple[np.ndarray, np.ndarray]],
    extent: float,
) -> None:
    """Draws trajectories and vector fields that were computed before.

    Args:
        path: PNG file to write.
        motions: Dictionary of pairs by name: trajectories of shape
            `(starts, steps + 1, 2)`, and the vector field at `grid(extent)`, of shape
            `(points, 2)`.
        extent: Half the length of each axis.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    columns = min(4, len(motions))
    rows = -(-len(motions) // columns)
    figure, axes = subplots(rows, (4 * columns, 4.2 * rows), columns)
    points = grid(extent)
    for axis in axes[len(motions) :]:
        axis.set_axis_off()
    for axis, (name, (paths, field)) in zip(axes, motions.items(), strict=False):
        axis.quiver(*points.T, *field.T, color="gray", angles="xy", width=0.003)
        for path_ in paths:
            (line,) = axis.plot(*path_.T, ".-", markersize=3, linewidth=1)
            axis.plot(*path_[0], "*", color=line.get_color(), markersize=14)
        axis.set(title=name, aspect="equal")
        axis.set(xlabel="first unit", ylabel="second unit")
        axis.label_outer()
        axis.set(xlim=(-1.05 * extent, 1.05 * extent))
        axis.set(ylim=(-1.05 * extent, 1.05 * extent))
    save(figure, path)


def grid(extent: float) -> np.ndarray:
    """Returns the points at which the vector field is drawn.

    Args:
        extent: Half the length of each axis.

    Returns:
        Array of shape `(361, 2)`.
    """
    axis = np.linspace(-extent, extent, 19)
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
