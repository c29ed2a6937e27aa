"""Figures of diagnostics, training curves and spectrograms, as PNG files."""

import os
import reprlib
from collections.abc import Mapping, Sequence, Sized
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_ortho.audio.stft import HOP_LENGTH, SAMPLE_RATE
from keras_ortho.diagnostics.plane import trajectories, vector_field
from keras_ortho.extras import require
from keras_ortho.files import replacing


def plot_curves(
    path: str | os.PathLike[str],
    curves: Mapping[str, Sequence[float]],
    *,
    x: Mapping[str, Sequence[float]] | None = None,
    bands: Mapping[str, tuple[Sequence[float], Sequence[float]]] | None = None,
    baselines: Mapping[str, float] | None = None,
    emphasized: str = "",
    xlabel: str = "epoch",
    ylabel: str = "loss",
    log: bool = False,
) -> None:
    """Draws learning curves and baselines.

    Args:
        path: PNG file to write.
        curves: Dictionary of curves by name, each a sequence of y values.
        x: Dictionary of the x values of each curve. Default: `None`, 1, 2, ...
        bands: Dictionary of the lower and upper ends of a band around a curve, by its
            name, such as the minimum and maximum over several seeds.
            Default: `None`.
        baselines: Dictionary of the y values of horizontal lines, by name.
            Default: `None`.
        emphasized: Name of a curve to draw thick and in black. Default: `""`, none.
        xlabel: Label of the x axis. Default: `"epoch"`.
        ylabel: Label of the y axis, with its unit. Default: `"loss"`.
        log: Whether the y axis is logarithmic, if any value is positive.
            Default: `False`.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If `path` does not end in `.png`, or `curves` is not a dictionary
            or is empty.

    Example:

    >>> plot_curves("loss.png", {"scoRNN": [3.0, 2.0, 1.5]}, baselines={"LSTM": 1.7})
    """
    _check_figure(path, "curves", curves)
    figure, axes = _subplots(1, (7 + _inches_beside(curves), 4.5))
    for number, (name, values) in enumerate(curves.items()):
        places = np.arange(1, len(values) + 1) if x is None else x[name]
        # Matplotlib repeats its colors after ten.
        style: dict[str, Any] = {"linestyle": "-" if number < 10 else "--"}
        if name == emphasized:
            style |= {"color": "black", "linewidth": 3, "zorder": 3}
        (line,) = axes[0].plot(places, values, label=name, **style)
        if bands and name in bands:
            axes[0].fill_between(
                places, *bands[name], color=line.get_color(), alpha=0.2, linewidth=0
            )
    for name, level in (baselines or {}).items():
        axes[0].axhline(level, color="gray", linestyle="--", linewidth=1)
        axes[0].annotate(
            name,
            (1, level),
            (-4, 3),
            ("axes fraction", "data"),
            "offset points",
            ha="right",
            color="gray",
        )
    axes[0].set(xlabel=xlabel, ylabel=ylabel)
    if log and any(np.any(np.asarray(v) > 0) for v in curves.values()):
        axes[0].set_yscale("log")
    axes[0].grid(alpha=0.3)
    _add_legend(axes[0], curves)
    _save(figure, path)


def plot_gradient_norms(
    path: str | os.PathLike[str], norms: Mapping[str, Sequence[float]]
) -> None:
    """Draws `||dL/dh_t||` against `t` for several models, on a logarithmic axis.

    Args:
        path: PNG file to write.
        norms: Dictionary of arrays of shape `(time,)` by name, as returned by
            `gradient_norms`.

    Raises:
        ImportError: As in `plot_curves`.
        ValueError: As in `plot_curves`.

    Example:

    >>> from keras_ortho.diagnostics import gradient_norms
    >>> x, y = np.ones((8, 3, 2)), np.zeros((8, 4))
    >>> norms = gradient_norms(model, x, y, loss="mse")
    >>> plot_gradient_norms("norms.png", {"scoRNN": norms})

    Reference:

    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
      figure 5
    """
    _check_figure(path, "norms", norms)
    plot_curves(path, norms, xlabel="t", ylabel="||dL/dh_t||", log=True)


def plot_heat_map(
    path: str | os.PathLike[str], maps: Mapping[str, np.ndarray], *, log: bool = False
) -> None:
    """Draws heat maps of `||dh_tau/dx_t||` in one column.

    Args:
        path: PNG file to write.
        maps: Dictionary of arrays of shape `(time, time)` by name, such as that of the
            model or part of the state, as returned by `input_sensitivity`. `t`
            increases from left to right, `tau` from top to bottom.
        log: Whether the color scale is logarithmic, over at most 10 decades.
            Default: `False`.

    Raises:
        ImportError: As in `plot_curves`.
        ValueError: As in `plot_curves`.

    Example:

    >>> from keras_ortho.diagnostics import input_sensitivity
    >>> norms = input_sensitivity(model, np.ones((2, 3, 2)))
    >>> plot_heat_map("heat.png", {"scoRNN": norms})

    Reference:

    - [Helfrich and Ye, 2020](https://arxiv.org/abs/1911.07964)
    """
    _check_figure(path, "maps", maps)
    figure, axes = _subplots(len(maps), (5.5, 4.5 * len(maps)))
    for axis, (name, values) in zip(axes, maps.items(), strict=True):
        shown = np.asarray(values, "float64")
        # Entries with `t > tau` are undefined, not small.
        shown = np.where(np.tri(len(shown)) > 0, shown, np.nan)
        if log:
            with np.errstate(divide="ignore"):
                shown = np.log10(shown)
            shown = np.maximum(shown, np.nanmax(shown) - 10)
        end = len(shown) + 0.5
        # The figure is about square. With an equal aspect, the label would be cut off.
        image = axis.imshow(shown, extent=(0.5, end, end, 0.5), aspect="auto")
        axis.set(title=name, ylabel="tau")
        figure.colorbar(image, ax=axis, label="log10 of the norm" if log else "norm")
    axes[-1].set_xlabel("t")
    _save(figure, path)


def plot_eigenvalues(
    path: str | os.PathLike[str], eigenvalues: Mapping[str, np.ndarray]
) -> None:
    """Draws eigenvalues in the complex plane, with the unit circle.

    Args:
        path: PNG file to write.
        eigenvalues: Dictionary of complex arrays of any shape by name, such as those
            that `kernel_eigenvalues` and `jacobian_eigenvalues` return.

    Raises:
        ImportError: As in `plot_curves`.
        ValueError: As in `plot_curves`.

    Example:

    >>> from keras_ortho.diagnostics import kernel_eigenvalues
    >>> plot_eigenvalues("eigenvalues.png", kernel_eigenvalues(model))
    """
    _check_figure(path, "eigenvalues", eigenvalues)
    figure, (axis,) = _subplots(1, (5.5 + _inches_beside(eigenvalues), 5.5))
    angles = np.linspace(0, 2 * np.pi, 400)
    axis.plot(np.cos(angles), np.sin(angles), color="gray", linewidth=1)
    for name, values in eigenvalues.items():
        values = np.ravel(values)
        axis.plot(values.real, values.imag, "o", label=name, alpha=0.6, markersize=5)
    axis.set(xlabel="real part", ylabel="imaginary part", aspect="equal")
    axis.grid(alpha=0.3)
    _add_legend(axis, eigenvalues)
    _save(figure, path)


def plot_eigenvalue_moduli(
    path: str | os.PathLike[str],
    eigenvalues: Mapping[str, Mapping[float, np.ndarray]],
    *,
    xlabel: str = "T",
) -> None:
    """Draws the mean and standard deviation of the moduli of eigenvalues.

    Args:
        path: PNG file to write.
        eigenvalues: Dictionary of dictionaries by model name. The inner ones map
            positions on the x axis, such as sequence lengths, to eigenvalues, complex
            arrays of any shape.
        xlabel: Label of the x axis. Default: `"T"`.

    Raises:
        ImportError: As in `plot_curves`.
        ValueError: As in `plot_curves`.

    Example:

    >>> from keras_ortho.diagnostics import jacobian_eigenvalues
    >>> values = {T: jacobian_eigenvalues(model, np.ones((1, T, 2))) for T in [3]}
    >>> plot_eigenvalue_moduli("moduli.png", {"scoRNN": values})

    Reference:

    - [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), figure 2. It
      does not say how eigenvalues become real numbers; this uses their moduli.
    """
    _check_figure(path, "eigenvalues", eigenvalues)
    figure, axes = _subplots(2, (6 + _inches_beside(eigenvalues), 6))
    for number, (name, at) in enumerate(eigenvalues.items()):
        moduli = [np.abs(values) for values in at.values()]
        line = "o-" if number < 10 else "o--"
        axes[0].plot(list(at), [m.mean() for m in moduli], line, label=name)
        axes[1].plot(list(at), [m.std() for m in moduli], line)
    axes[0].axhline(1, color="gray", linestyle="--", linewidth=1)
    axes[0].set(ylabel="mean of the moduli")
    axes[1].set(ylabel="standard deviation", xlabel=xlabel)
    for axis in axes:
        axis.grid(alpha=0.3)
    _add_legend(axes[0], eigenvalues)
    _save(figure, path)


def plot_trajectories(
    path: str | os.PathLike[str],
    models: Mapping[str, keras.layers.Layer],
    starts: Any = ((-0.6, -0.6), (0.3, 0.7), (0.8, -0.4)),
    num_steps: int = 100,
    *,
    layer: str | None = None,
) -> None:
    """Draws trajectories of two-dimensional states over their vector fields.

    The inputs are zero. Each axis shows -1 to 1.

    Args:
        path: PNG file to write.
        models: Dictionary of models or recurrent layers by name, as in `trajectories`.
        starts: Initial states, marked with stars: an array of shape `(starts, 2)`.
            Default: three points.
        num_steps: Number of steps. Default: 100.
        layer: Name of the recurrent layer in each model. Default: `None`, the only
            recurrent layer.

    Raises:
        ImportError: As in `plot_curves`.
        ValueError: As in `plot_curves` and in `trajectories`.

    Example:

    >>> layer = keras.layers.SimpleRNN(2)
    >>> layer.build((None, None, 1))
    >>> plot_trajectories("plane.png", {"SimpleRNN": layer}, num_steps=20)

    Reference:

    - [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), figure 1
    """
    _check_figure(path, "models", models)
    points = np.stack(np.meshgrid(*[np.linspace(-1, 1, 19)] * 2), -1).reshape(-1, 2)
    columns = min(4, len(models))
    rows = -(-len(models) // columns)
    figure, axes = _subplots(rows, (4 * columns, 4.2 * rows), columns)
    for axis in axes[len(models) :]:
        axis.set_axis_off()
    for axis, (name, model) in zip(axes, models.items(), strict=False):
        field = vector_field(model, points, layer=layer)
        axis.quiver(*points.T, *field.T, color="gray", angles="xy", width=0.003)
        for path_ in trajectories(model, starts, num_steps, layer=layer):
            (line,) = axis.plot(*path_.T, ".-", markersize=3, linewidth=1)
            axis.plot(*path_[0], "*", color=line.get_color(), markersize=14)
        axis.set(title=name, aspect="equal", xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))
        axis.set(xlabel="first unit", ylabel="second unit")
        axis.label_outer()
    _save(figure, path)


def plot_spectrograms(
    path: str | os.PathLike[str],
    spectrograms: Mapping[str, np.ndarray],
    *,
    sample_rate: int = SAMPLE_RATE,
    hop_length: int = HOP_LENGTH,
) -> None:
    """Draws spectrograms in one column, with a common range of 70 dB from their peak.

    Args:
        path: PNG file to write.
        spectrograms: Dictionary of arrays of shape `(frames, bins)` by name, log power
            in dB.
        sample_rate: Sample rate in Hz. Default: 8000.
        hop_length: Number of samples between successive frames. Default: 128.

    Raises:
        ImportError: As in `plot_curves`.
        ValueError: As in `plot_curves`.

    Example:

    >>> plot_spectrograms("speech.png", {"clean": log_power(stft(speech))})
    """
    _check_figure(path, "spectrograms", spectrograms)
    figure, axes = _subplots(len(spectrograms), (9, 2.2 * len(spectrograms)))
    top = max(float(power.max()) for power in spectrograms.values())
    for axis, (name, power) in zip(axes, spectrograms.items(), strict=True):
        image = axis.imshow(
            power.T,
            origin="lower",
            aspect="auto",
            vmin=top - 70,
            vmax=top,
            cmap="magma",
            extent=(0, len(power) * hop_length / sample_rate, 0, sample_rate / 2000),
        )
        axis.set(title=name, ylabel="kHz")
        axis.label_outer()
    axes[-1].set_xlabel("seconds")
    figure.colorbar(image, ax=list(axes), label="dB", fraction=0.05, pad=0.02)
    _save(figure, path)


def _check_figure(path: str | os.PathLike[str], argument: str, values: Any) -> None:
    """Checks the path of a figure, and the dictionary of what it shows."""
    if not isinstance(values, Mapping) or not values:
        raise ValueError(
            f"`{argument}` must be a dictionary from names to what is drawn. Received: "
            f"{argument}={reprlib.repr(values)}"
        )
    if Path(path).suffix != ".png":
        raise ValueError(
            f"`path` must be a file with the suffix .png. Received: path={path}"
        )


def _subplots(
    rows: int, size: tuple[float, float], columns: int = 1
) -> tuple[Any, Any]:
    """Creates a figure of `size` in inches, and returns it and its axes, flattened."""
    # Without pyplot, which keeps every figure and chooses a display backend.
    figure = require("matplotlib.figure", extra="plot").Figure(
        figsize=size, layout="constrained"
    )
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey="row")
    return figure, axes.ravel()


def _inches_beside(entries: Sized) -> int:
    """Returns the width of a legend beside the axes in inches, 0 if it fits inside."""
    return 2 if len(entries) > 6 else 0


def _add_legend(axis: Any, entries: Sized) -> None:
    """Adds a legend, inside the axes if it fits, otherwise beside them."""
    if _inches_beside(entries):
        axis.legend(loc="upper left", bbox_to_anchor=(1, 1))
    else:
        # The default is also "best", but warns if the search takes over a second.
        axis.legend(loc="best")


def _save(figure: Any, path: str | os.PathLike[str]) -> None:
    """Writes a figure as PNG via a temporary file, and creates missing folders."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as aside:
        figure.savefig(aside, format="png", dpi=120)
