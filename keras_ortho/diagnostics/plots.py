"""Figures of diagnostics, training curves and spectrograms."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_ortho.audio.stft import HOP_LENGTH, SAMPLE_RATE
from keras_ortho.diagnostics.flow import trajectories, vector_field
from keras_ortho.extras import require
from keras_ortho.files import FilePath, replacing


def plot_curves(
    path: FilePath,
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
        path: PNG file to write. Missing folders are created.
        curves: Dictionary of curves by name, each a sequence of y values.
        x: Dictionary of the x values of each curve. Default: `None`, 1, 2, ...
        bands: Lower and upper ends of bands around curves, by name. Default: `None`.
        baselines: The y values of horizontal lines, by name. Default: `None`.
        emphasized: Name of a curve to draw thick and in black. Default: `""`, none.
        xlabel: Label of the x axis. Default: `"epoch"`.
        ylabel: Label of the y axis, with its unit. Default: `"loss"`.
        log: Whether the y axis is logarithmic. Default: `False`.

    Example:
    >>> plot_curves("loss.png", {"scoRNN": [3.0, 2.0, 1.5]}, baselines={"LSTM": 1.7})
    """
    with _figure(path, (7, 4.5), legend=curves) as (axis,):
        for number, (name, values) in enumerate(curves.items()):
            places = np.arange(1, len(values) + 1) if x is None else x[name]
            # Matplotlib repeats its colors after ten.
            style: dict[str, Any] = {"linestyle": "-" if number < 10 else "--"}
            if name == emphasized:
                style |= {"color": "black", "linewidth": 3, "zorder": 3}
            (line,) = axis.plot(places, values, label=name, **style)
            if bands and name in bands:
                look = {"color": line.get_color(), "alpha": 0.2, "linewidth": 0}
                axis.fill_between(places, *bands[name], **look)
        for name, level in (baselines or {}).items():
            axis.axhline(level, color="gray", linestyle="--", linewidth=1)
            place = {"transform": axis.get_yaxis_transform(), "va": "bottom"}
            label = axis.text(0.99, level, name, ha="right", color="gray", **place)
            label.set_in_layout(False)  # It may lie far outside of the axes.
        axis.set(xlabel=xlabel, ylabel=ylabel)
        if log and any(np.any(np.asarray(v) > 0) for v in curves.values()):
            axis.set_yscale("log")


def plot_gradient_norms(path: FilePath, norms: Mapping[str, Sequence[float]]) -> None:
    """Draws `||dL/dh_t||` against `t` for several models, on a logarithmic axis.

    As in [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
    figure 5.

    Args:
        path: PNG file to write.
        norms: Dictionary of arrays of shape `(time,)`, as from `gradient_norms`.

    Example:
    >>> plot_gradient_norms("norms.png", {"scoRNN": [0.5, 0.7, 1.0]})
    """
    plot_curves(path, norms, xlabel="t", ylabel="||dL/dh_t||", log=True)


def plot_heat_map(
    path: FilePath, maps: Mapping[str, np.ndarray], *, log: bool = False
) -> None:
    """Draws heat maps of `||dh_tau/dx_t||` in one column.

    As in [Helfrich and Ye, 2020](https://arxiv.org/abs/1911.07964).

    Args:
        path: PNG file to write.
        maps: Dictionary of arrays of shape `(time, time)`, as from `input_sensitivity`.
        log: Whether the colors are logarithmic, over 10 decades. Default: `False`.

    Example:
    >>> plot_heat_map("heat.png", {"scoRNN": [[1.0, 0.0], [0.7, 1.0]]})
    """
    with _figure(path, (5.5, 4.5 * len(maps)), len(maps)) as axes:
        for axis, (name, values) in zip(axes, maps.items(), strict=True):
            # Entries with `t > tau` are undefined, not small.
            shown = np.where(np.tri(len(values)) > 0, values, np.nan)
            if log:
                with np.errstate(divide="ignore"):
                    shown = np.log10(shown)
                shown = np.maximum(shown, np.nanmax(shown) - 10)
            end = len(shown) + 0.5
            # The figure is about square. With an equal aspect, the label would be cut.
            image = axis.imshow(shown, extent=(0.5, end, end, 0.5), aspect="auto")
            axis.set(title=name, ylabel="tau")
            label = "log10 of the norm" if log else "norm"
            axis.figure.colorbar(image, ax=axis, label=label)
        axes[-1].set_xlabel("t")


def plot_eigenvalues(path: FilePath, eigenvalues: Mapping[str, np.ndarray]) -> None:
    """Draws eigenvalues in the complex plane, with the unit circle.

    Args:
        path: PNG file to write.
        eigenvalues: Dictionary of complex arrays, as from `kernel_eigenvalues`.

    Example:
    >>> plot_eigenvalues("eigenvalues.png", {"scoRNN": [1.0, 0.6 + 0.8j, 0.6 - 0.8j]})
    """
    with _figure(path, (5.5, 5.5), legend=eigenvalues) as (axis,):
        circle = np.exp(2j * np.pi * np.linspace(0, 1, 400))
        axis.plot(circle.real, circle.imag, color="gray", linewidth=1)
        for name, values in eigenvalues.items():
            values = np.ravel(values)
            axis.plot(values.real, values.imag, "o", label=name, alpha=0.6, ms=5)
        axis.set(xlabel="real part", ylabel="imaginary part", aspect="equal")


def plot_eigenvalue_moduli(
    path: FilePath,
    eigenvalues: Mapping[str, Mapping[float, np.ndarray]],
    *,
    xlabel: str = "T",
) -> None:
    """Draws the mean and standard deviation of the moduli of eigenvalues.

    As in [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), figure 2.

    Args:
        path: PNG file to write.
        eigenvalues: For each model, by name, a dictionary from positions on the x axis,
            such as sequence lengths, to complex arrays of any shape.
        xlabel: Label of the x axis. Default: `"T"`.

    Example:
    >>> values = {100: [1.0, 0.6 + 0.8j], 200: [0.9, 0.5j]}
    >>> plot_eigenvalue_moduli("moduli.png", {"scoRNN": values})
    """
    with _figure(path, (6, 6), 2, legend=eigenvalues) as (above, below):
        for number, (name, at) in enumerate(eigenvalues.items()):
            moduli = [np.abs(values) for values in at.values()]
            line = "o-" if number < 10 else "o--"
            above.plot(list(at), [m.mean() for m in moduli], line, label=name)
            below.plot(list(at), [m.std() for m in moduli], line)
        above.axhline(1, color="gray", linestyle="--", linewidth=1)
        above.set(ylabel="mean of the moduli")
        below.set(ylabel="standard deviation", xlabel=xlabel)


def plot_trajectories(
    path: FilePath,
    models: Mapping[str, keras.layers.Layer],
    starts: Any = ((-0.6, -0.6), (0.3, 0.7), (0.8, -0.4)),
    num_steps: int = 100,
    *,
    layer: str | None = None,
) -> None:
    """Draws trajectories of two-dimensional states over their vector fields.

    As in [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), figure 1.

    Args:
        path: PNG file to write.
        models: Dictionary of models or recurrent layers by name, as in `trajectories`.
        starts: Initial states, of shape `(starts, 2)`, marked with stars. Default: 3.
        num_steps: Number of steps. Default: 100.
        layer: Name of the recurrent layer in each model. Default: `None`, the only one.

    Raises:
        ValueError: As in `trajectories`.

    Example:
    >>> layer = keras.layers.SimpleRNN(2)
    >>> layer.build((None, None, 1))
    >>> plot_trajectories("plane.png", {"SimpleRNN": layer}, num_steps=20)
    """
    points = np.stack(np.meshgrid(*[np.linspace(-1, 1, 19)] * 2), -1).reshape(-1, 2)
    columns = min(4, len(models))
    rows = -(-len(models) // columns)
    with _figure(path, (4 * columns, 4.2 * rows), rows, columns) as axes:
        for axis in axes[len(models) :]:
            axis.set_axis_off()
        for axis, (name, model) in zip(axes, models.items(), strict=False):
            field = vector_field(model, points, layer=layer)
            axis.quiver(*points.T, *field.T, color="gray", angles="xy", width=0.003)
            for states in trajectories(model, starts, num_steps, layer=layer):
                (line,) = axis.plot(*states.T, ".-", ms=3, linewidth=1)
                axis.plot(*states[0], "*", color=line.get_color(), ms=14)
            axis.set(title=name, aspect="equal", xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))
            axis.set(xlabel="first unit", ylabel="second unit")
            axis.label_outer()


def plot_spectrograms(
    path: FilePath,
    spectrograms: Mapping[str, np.ndarray],
    *,
    sample_rate: int = SAMPLE_RATE,
    hop_length: int = HOP_LENGTH,
) -> None:
    """Draws spectrograms in one column, with a common range of 70 dB from their peak.

    Args:
        path: PNG file to write.
        spectrograms: Dictionary of arrays of shape `(frames, bins)`, log power in dB.
        sample_rate: Sample rate in Hz. Default: 8000.
        hop_length: Number of samples between successive frames. Default: 128.

    Example:
    >>> plot_spectrograms("speech.png", {"clean": log_power(stft(speech))})
    """
    top = max(float(power.max()) for power in spectrograms.values())
    style = {"vmin": top - 70, "vmax": top, "cmap": "magma", "origin": "lower"}
    rows = len(spectrograms)
    with _figure(path, (9, 2.2 * rows), rows) as axes:
        for axis, (name, power) in zip(axes, spectrograms.items(), strict=True):
            seconds = len(power) * hop_length / sample_rate
            extent = (0, seconds, 0, sample_rate / 2000)
            image = axis.imshow(power.T, aspect="auto", extent=extent, **style)
            axis.set(title=name, ylabel="kHz")
            axis.label_outer()
        axes[-1].set_xlabel("seconds")
        bar = {"label": "dB", "fraction": 0.05, "pad": 0.02}
        axes[0].figure.colorbar(image, ax=list(axes), **bar)


@contextlib.contextmanager
def _figure(
    path: FilePath,
    size: tuple[float, float],
    rows: int = 1,
    columns: int = 1,
    legend: Sized = (),
) -> Iterator[Any]:
    """Yields the axes of a figure of `size` in inches, and saves it at the end."""
    beside = len(legend) > 6
    # Without pyplot, which keeps every figure and chooses a display backend.
    figure = require("matplotlib.figure", extra="plot").Figure(
        figsize=(size[0] + 2 * beside, size[1]), layout="constrained"
    )
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey="row")
    yield axes.ravel()
    if legend:
        place = {"bbox_to_anchor": (1, 1)} if beside else {}
        axes[0, 0].legend(loc="upper left" if beside else "best", **place)
        for axis in axes.ravel():
            axis.grid(alpha=0.3)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as aside:
        figure.savefig(aside, format="png", dpi=120)
