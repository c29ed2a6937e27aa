"""Every figure is drawn, of ordinary numbers and of those at the edge."""

import warnings

import numpy as np
import pytest
from keras import layers

from keras_ortho.diagnostics import (
    plot_eigenvalue_moduli,
    plot_eigenvalues,
    plot_gradient_norms,
    plot_heat_map,
    plot_trajectories,
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
    "log heat": lambda path: plot_heat_map(path, {"a": MAP}, log=True),
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
    path = tmp_path / "figure.png"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DRAWINGS[name](path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 5000
    assert [p.name for p in tmp_path.iterdir()] == ["figure.png"]


def test_a_figure_makes_its_folder(tmp_path):
    plot_gradient_norms(tmp_path / "new" / "one.png", {"a": np.ones(3)})
    assert (tmp_path / "new" / "one.png").exists()


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: plot_gradient_norms("a.png", np.ones(3)), "`norms` .* norms=array"),
        (lambda: plot_heat_map("a.png", MAP), "`maps` .* maps=array"),
        (lambda: plot_eigenvalues("a.png", {}), "`eigenvalues` .* eigenvalues={}"),
        (lambda: plot_eigenvalue_moduli("a.png", []), "`eigenvalues` .* eigenvalues="),
        (lambda: plot_trajectories("a.png", layers.GRU(2)), "`models` .* models=<GRU"),
        (lambda: plot_gradient_norms("a.pdf", {"a": [1]}), "`path` .* path=a.pdf"),
        (lambda: plot_gradient_norms({"a": [1]}, "a.png"), "`norms` .* norms='a.png'"),
    ],
)
def test_bad_arguments(draw, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        draw()
    assert not list(tmp_path.iterdir())
