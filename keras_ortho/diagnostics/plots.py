"""Figures of training runs and of speech, as PNG files."""

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
    """Draws learning curves, and levels to compare them with.

    Args:
        path: PNG file to write.
        curves: Values by name, one an epoch.
        x: Where on the x axis, for each curve. Default: 1, 2, ...
        bands: The lower and the upper end of a band around a curve, by its name, such
            as the least and the greatest of several seeds. Default: none.
        baselines: Horizontal lines by name. Default: none.
        emphasized: Name of a curve that is to stand out, black and broad. Default:
            none.
        xlabel: What the x axis shows. Default: `"epoch"`.
        ylabel: What the y axis shows, with its unit. Default: `"loss"`.
        log: Whether the y axis is logarithmic, where there is a positive value at
            all. Default: `False`.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If `path` is no PNG file, or `curves` no dictionary, or empty.

    Example:

    >>> plot_curves("loss.png", {"scoRNN": [3.0, 2.0, 1.5]}, baselines={"LSTM": 1.7})
    """
    check_figure(path, "curves", curves)
    figure, axes = subplots(1, (7 + inches_beside(curves), 4.5))
    for number, (name, values) in enumerate(curves.items()):
        places = np.arange(1, len(values) + 1) if x is None else x[name]
        # There are ten colors.
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
    """Draws spectrograms below each other, on one scale: 70 dB from their peak.

    Args:
        path: PNG file to write.
        spectrograms: Log power in dB by name, arrays of shape `(frames, bins)`.
        sample_rate: In Hz. Default: 8000.
        hop_length: Samples from frame to frame. Default: 128.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If `path` is no PNG file, or `spectrograms` no dictionary, or empty.

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
