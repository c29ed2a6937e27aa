"""Options of the benchmarks, calls in turns, and processes that work together."""

import argparse
import os
import sys
import time
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def beside_the_benchmarks(monkeypatch):
    """They import one another as scripts do, by names that may stand elsewhere, too."""
    names = ("machine", "options", "processes", "turns")
    monkeypatch.syspath_prepend(FOLDER)
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield
    for name in names:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "", "x"])
def test_counts_are_positive(text):
    from options import positive_int

    assert positive_int("12") == 12
    with pytest.raises(argparse.ArgumentTypeError, match=rf"Received: {text}$"):
        positive_int(text)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "", "x"])
def test_numbers_are_positive_and_finite(text):
    from options import positive_float

    assert positive_float("1e-3") == 1e-3
    with pytest.raises(argparse.ArgumentTypeError, match=rf"Received: {text}$"):
        positive_float(text)


def test_calls_take_turns():
    from turns import in_turns, medians_in_turns

    calls = []
    ticks = iter(range(100))
    seconds = in_turns(
        {name: lambda name=name: calls.append(name) for name in "ab"},
        3,
        clock=lambda: next(ticks),
    )
    assert "".join(calls) == "ababab"
    assert seconds == {"a": [1] * 3, "b": [1] * 3}
    found = medians_in_turns({"a": {"train": lambda: None, "infer": None}}, 3)["a"]
    assert set(found) == {"train", "train_range"}
    assert found["train_range"][0] <= found["train"] <= found["train_range"][1]


def test_processes_that_work_together(tmp_path):
    from processes import run_together

    script = tmp_path / "says.py"
    script.write_text("import sys; print(sys.argv[1])")
    said = run_together(str(script), [{"process": 0}, {"process": 1}], os.environ)
    assert said == ['{"process": 0}\n', '{"process": 1}\n']
    # The first would wait for the second.
    script.write_text(
        "import json, sys, time\n"
        "json.loads(sys.argv[1])['process'] and sys.exit('it fails')\n"
        "time.sleep(300)\n"
    )
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="status 1. Received: it fails"):
        run_together(str(script), [{"process": 0}, {"process": 1}], os.environ)
    assert time.monotonic() - start < 200
