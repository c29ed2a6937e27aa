"""What a figure of learning curves shows."""

import numpy as np
from matplotlib.colors import same_color

from keras_ortho.diagnostics import plot_curves, plots


def drawn(monkeypatch, **kwargs):
    figures = []
    monkeypatch.setattr(plots, "_save", lambda figure, path: figures.append(figure))
    plot_curves("none.png", {"mine": [3.0, 2.0], "others": [4.0, 3.0]}, **kwargs)
    return figures[0].axes[0]


def test_an_emphasized_curve_stands_out(monkeypatch):
    mine, others = drawn(monkeypatch, emphasized="mine").get_lines()
    assert same_color(mine.get_color(), "black")
    assert not same_color(others.get_color(), "black")
    assert mine.get_linewidth() > others.get_linewidth()
    assert mine.get_zorder() > others.get_zorder()
    mine, others = drawn(monkeypatch).get_lines()
    assert mine.get_linewidth() == others.get_linewidth()


def test_a_band_lies_around_its_curve(monkeypatch):
    axes = drawn(monkeypatch, bands={"others": ([3.5, 2.5], [5.0, 4.0])})
    (band,) = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (2.5, 5.0)
    _, others = axes.get_lines()
    color = [*band.get_facecolor()[0][:3]]
    assert same_color(color, others.get_color())
    assert np.isclose(band.get_alpha(), 0.2)
