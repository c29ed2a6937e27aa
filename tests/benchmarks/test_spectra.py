"""The pictures of the spectra are drawn, and show what the matrices do."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "spectra.py"


def run(*arguments):
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_draws_spectra(tmp_path):
    done = run("--updates", "10", "--only", "ScoRNN", "SimpleRNN", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    names = ["scornn-eigenvalues.png", "simplernn-eigenvalues.png", "margins.png"]
    for name in names:
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    report = json.loads((tmp_path / "spectra.json").read_text())
    assert report["updates"] == list(range(11))
    # The same start; then one stays at rounding, and the other does not.
    assert report["margins"]["SimpleRNN"][0] < 1e-5
    assert max(report["margins"]["ScoRNN"]) < 1e-5
    assert report["margins"]["SimpleRNN"][-1] > 1e-3


@pytest.mark.slow
def test_updates_that_cannot_be_divided_are_refused():
    done = run("--updates", "15")
    assert done.returncode == 2
    assert done.stderr.endswith("a multiple of 10. Received: 15\n")
