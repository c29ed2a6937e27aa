import sys

import pytest

from tests.examples.modules import load_example

FIGURES = ("gradient-norms", "heat-maps", "trajectories", "jacobians")


@pytest.mark.slow
def test_smoke(tmp_path, monkeypatch):
    figures = load_example("figures")
    for figure in FIGURES:
        arguments = ["figures.py", figure, "--smoke", "--out", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", arguments)
        figures.main()
        assert (tmp_path / f"{figure}.png").stat().st_size > 5000
        assert (tmp_path / f"{figure}.json").stat().st_size > 100
