"""Every figure is drawn, of ordinary numbers and of those at the edge."""

import warnings

import numpy as np
import pytest
from keras import layers
from matplotlib.colors import same_color
from matplotlib.figure import Figure

from keras_ortho.diagnostics import (
    plot_curves,
    plot_eigenvalue_moduli,
    plot_eigenvalues,
    plot_gradient_norms,
    plot_heat_map,
    plot_spectrograms,
    plot_trajectories,
)

MAP = np.tri(12) * np.exp(-np.arange(12.0))
VALUES = np.exp(1j * np.arange(5))
PLANE = layers.SimpleRNN(2)
PLANE.build((None, None, 1))
MANY = {str(i): {10: VALUES, 20: i * VALUES} for i in range(12)}

DRAWINGS = [
    (plot_gradient_norms, {"a": 10.0 ** -np.arange(9), "b": np.zeros(9)}, {}),
    (plot_gradient_norms, {"a": [0.0, 0.0]}, {}),
    (plot_heat_map, {"a": MAP, "b": MAP[:3, :3]}, {}),
    (plot_heat_map, {"a": np.zeros((2, 2))}, {"log": True}),
    (plot_eigenvalues, {"a": VALUES, "b": VALUES[:1]}, {}),
    (plot_eigenvalue_moduli, MANY, {}),
    (plot_trajectories, {"one": PLANE, "two": PLANE}, {"num_steps": 5}),
    (plot_spectrograms, {"a": np.arange(40.0).reshape(8, 5)}, {}),
]


@pytest.mark.parametrize(("draw", "shown", "given"), DRAWINGS)
def test_drawings(draw, shown, given, tmp_path):
    path = tmp_path / "new" / "figure.png"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw(path, shown, **given)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 5000
    assert [p.name for p in path.parent.iterdir()] == ["figure.png"]


def test_learning_curves(monkeypatch, tmp_path):
    """One stands out, and a band lies around another."""
    figures, save = [], Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda *a, **kw: (figures.append(a[0]), save(*a, **kw))
    )
    curves = {"mine": [3.0, 2.0], "others": [4.0, 3.0]}
    bands = {"others": ([3.5, 2.5], [5.0, 4.0])}
    plot_curves(tmp_path / "a.png", curves, emphasized="mine", bands=bands)
    axes = figures[0].axes[0]
    mine, others = axes.get_lines()
    assert same_color(mine.get_color(), "black")
    assert mine.get_linewidth() > others.get_linewidth()
    (band,) = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (2.5, 5.0)
    assert same_color([*band.get_facecolor()[0][:3]], others.get_color())
