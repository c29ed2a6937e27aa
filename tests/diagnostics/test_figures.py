"""Every figure is drawn, of ordinary numbers and of those at the edge."""

import warnings

import numpy as np
import pytest
from keras import layers
from matplotlib.colors import same_color

from keras_ortho.diagnostics import (
    plot_curves,
    plot_eigenvalue_moduli,
    plot_eigenvalues,
    plot_gradient_norms,
    plot_heat_map,
    plot_trajectories,
    plots,
)

MAP = np.tri(12) * np.exp(-np.arange(12.0))
VALUES = np.exp(1j * np.arange(5))


def plane(path):
    layer = layers.SimpleRNN(2)
    layer.build((None, None, 1))
    plot_trajectories(path, {"one": layer, "two": layer}, num_steps=5)


DRAWINGS = {
    "norms": lambda path: plot_gradient_norms(
        path, {"a": 10.0 ** -np.arange(9), "b": np.zeros(9)}
    ),
    "no gradient": lambda path: plot_gradient_norms(path, {"a": [0.0, 0.0]}),
    "heat": lambda path: plot_heat_map(path, {"a": MAP, "b": MAP[:3, :3]}),
    "no heat": lambda path: plot_heat_map(path, {"a": np.zeros((2, 2))}, log=True),
    "one step": lambda path: plot_heat_map(path, {"a": np.ones((1, 1))}),
    "eigenvalues": lambda path: plot_eigenvalues(path, {"a": VALUES, "b": VALUES[:1]}),
    "moduli": lambda path: plot_eigenvalue_moduli(
        path, {str(i): {10: VALUES, 20: i * VALUES} for i in range(12)}
    ),
    "plane": plane,
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_drawings(name, tmp_path):
    path = tmp_path / "new" / "figure.png"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DRAWINGS[name](path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 5000
    assert [p.name for p in path.parent.iterdir()] == ["figure.png"]


def test_learning_curves(monkeypatch):
    """One stands out, and a band lies around another."""
    figures = []
    monkeypatch.setattr(plots, "_save", lambda figure, path: figures.append(figure))
    curves = {"mine": [3.0, 2.0], "others": [4.0, 3.0]}
    bands = {"others": ([3.5, 2.5], [5.0, 4.0])}
    plot_curves("none.png", curves, emphasized="mine", bands=bands)
    axes = figures[0].axes[0]
    mine, others = axes.get_lines()
    assert same_color(mine.get_color(), "black")
    assert not same_color(others.get_color(), "black")
    assert mine.get_linewidth() > others.get_linewidth()
    assert mine.get_zorder() > others.get_zorder()
    (band,) = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (2.5, 5.0)
    assert same_color([*band.get_facecolor()[0][:3]], others.get_color())
