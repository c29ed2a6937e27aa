import pytest

from tests.examples.modules import run_example


@pytest.mark.slow
@pytest.mark.parametrize(
    "figure", ["gradient-norms", "heat-maps", "trajectories", "jacobians"]
)
def test_smoke(figure, tmp_path):
    run_example("figures", figure, "--smoke", "--out", tmp_path)
    assert (tmp_path / f"{figure}.png").stat().st_size > 5000
    assert (tmp_path / f"{figure}.json").stat().st_size > 100
