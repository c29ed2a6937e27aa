"""Figures of training curves and spectrograms, as PNG files."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from keras_ortho.audio.stft import HOP_LENGTH, SAMPLE_RATE
from keras_ortho.diagnostics.drawing import (
    add_legend,
    check_figure,
    inches_beside,
    save,
    subplots,
)


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
    check_figure(path, "curves", curves)
    figure, axes = subplots(1, (7 + inches_beside(curves), 4.5))
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
    add_legend(axes[0], curves)
    save(figure, path)


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
        ImportError: If matplotlib is not installed.
        ValueError: If `path` does not end in `.png`, or `spectrograms` is not a
            dictionary or is empty.

    Example:

    >>> plot_spectrograms("speech.png", {"clean": log_power(stft(speech))})
    """
    check_figure(path, "spectrograms", spectrograms)
    figure, axes = subplots(len(spectrograms), (9, 2.2 * len(spectrograms)))
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
    save(figure, path)
