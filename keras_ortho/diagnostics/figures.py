"""Figures of recurrent network diagnostics as in the papers, as PNG files."""

import os
from collections.abc import Mapping, Sequence

import numpy as np

from keras_ortho.diagnostics.drawing import (
    add_legend,
    check_figure,
    inches_beside,
    save,
    subplots,
)
from keras_ortho.diagnostics.plots import plot_curves


def plot_gradient_norms(
    path: str | os.PathLike[str], norms: Mapping[str, Sequence[float]]
) -> None:
    """Draws `||dL/dh_t||` against `t` for several models, on a logarithmic axis.

    Args:
        path: PNG file to write.
        norms: Dictionary of arrays of shape `(time,)` by name, as returned by
            `gradient_norms`.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If `path` does not end in `.png`, or `norms` is not a dictionary or
            is empty.

    Example:

    >>> from keras_ortho.diagnostics import gradient_norms
    >>> x, y = np.ones((8, 3, 2)), np.zeros((8, 4))
    >>> norms = gradient_norms(model, x, y, loss="mse")
    >>> plot_gradient_norms("norms.png", {"scoRNN": norms})

    Reference:

    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
      figure 5
    """
    check_figure(path, "norms", norms)
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
        ImportError: If matplotlib is not installed.
        ValueError: If `path` does not end in `.png`, or `maps` is not a dictionary or
            is empty.

    Example:

    >>> from keras_ortho.diagnostics import input_sensitivity
    >>> norms = input_sensitivity(model, np.ones((2, 3, 2)))
    >>> plot_heat_map("heat.png", {"scoRNN": norms})

    Reference:

    - [Helfrich and Ye, 2020](https://arxiv.org/abs/1911.07964)
    """
    check_figure(path, "maps", maps)
    figure, axes = subplots(len(maps), (5.5, 4.5 * len(maps)))
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
    save(figure, path)


def plot_eigenvalues(
    path: str | os.PathLike[str], eigenvalues: Mapping[str, np.ndarray]
) -> None:
    """Draws eigenvalues in the complex plane, with the unit circle.

    Args:
        path: PNG file to write.
        eigenvalues: Dictionary of complex arrays of any shape by name, such as those
            that `kernel_eigenvalues` and `jacobian_eigenvalues` return.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If `path` does not end in `.png`, or `eigenvalues` is not a
            dictionary or is empty.

    Example:

    >>> from keras_ortho.diagnostics import kernel_eigenvalues
    >>> plot_eigenvalues("eigenvalues.png", kernel_eigenvalues(model))
    """
    check_figure(path, "eigenvalues", eigenvalues)
    figure, (axis,) = subplots(1, (5.5 + inches_beside(eigenvalues), 5.5))
    angles = np.linspace(0, 2 * np.pi, 400)
    axis.plot(np.cos(angles), np.sin(angles), color="gray", linewidth=1)
    for name, values in eigenvalues.items():
        values = np.ravel(values)
        axis.plot(values.real, values.imag, "o", label=name, alpha=0.6, markersize=5)
    axis.set(xlabel="real part", ylabel="imaginary part", aspect="equal")
    axis.grid(alpha=0.3)
    add_legend(axis, eigenvalues)
    save(figure, path)


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
        ImportError: If matplotlib is not installed.
        ValueError: If `path` does not end in `.png`, or `eigenvalues` is not a
            dictionary or is empty.

    Example:

    >>> from keras_ortho.diagnostics import jacobian_eigenvalues
    >>> values = {T: jacobian_eigenvalues(model, np.ones((1, T, 2))) for T in [3]}
    >>> plot_eigenvalue_moduli("moduli.png", {"scoRNN": values})

    Reference:

    - [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), figure 2. It
      does not say how eigenvalues become real numbers; this uses their moduli.
    """
    check_figure(path, "eigenvalues", eigenvalues)
    figure, axes = subplots(2, (6 + inches_beside(eigenvalues), 6))
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
    add_legend(axes[0], eigenvalues)
    save(figure, path)
