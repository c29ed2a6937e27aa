"""The benchmark runs, for every candidate, at a shape that takes no time."""

import json
import sys
from pathlib import Path

import pytest

from tests.modules import run_python

pytestmark = pytest.mark.backends

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
SHAPE = {"units": 5, "steps": 7, "batch": 3, "jit_compile": False}


def run(task):
    printed = run_python(FOLDER / "measurement.py", input=json.dumps(task))
    return json.loads(printed.rpartition("RESULT ")[2])


@pytest.mark.slow
def test_times_of_all_candidates():
    sys.path.insert(0, str(FOLDER))
    try:
        from recurrence import NAMES, key, table
    finally:
        sys.path.remove(str(FOLDER))
    task = {"kind": "time", "names": NAMES, "shape": SHAPE, "repeats": 2}
    results = run(task)
    assert set(results) == set(NAMES)
    for name, result in results.items():
        if "skipped" in result:
            assert name == "torch RNN, orthogonal"
            assert 'pip install "keras-ortho[torch]"' in result["skipped"]
            continue
        assert 0 < result["train_range"][0] <= result["train"]
        assert result["infer"] > 0
        assert result["compile"] >= 0
    rows = [{**SHAPE, "name": name, **result} for name, result in results.items()]
    assert len({key(row) for row in rows}) == 1
    assert any("| SimpleRNN |" in line for line in table(rows))


@pytest.mark.slow
def test_peak_memory():
    task = {"kind": "memory", "names": ["ScoRNN"], "shape": SHAPE}
    assert run(task)["ScoRNN"]["memory_mib"] > 0
