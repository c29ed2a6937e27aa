import os
import random

import pytest

from tests.modules import ROOT, load_file, run_python


@pytest.mark.slow
@pytest.mark.backends
def test_a_few_of_each():
    counts = ["--kills", 3, "--flips", 8, "--writers", 1]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    printed = run_python(ROOT / "scripts" / "break_runs.py", *counts, env=environment)
    lines = printed.splitlines()
    found = {line[8:]: int(line[:6]) for line in lines if line[:6].strip().isdecimal()}
    assert found["kills"] == 3
    assert found["two at once: one is refused, and told by whom"] == 1
    damaged = [count for kind, count in found.items() if kind.startswith("damaged")]
    assert sum(damaged) == 8


def test_damages(tmp_path):
    script = load_file("scripts/break_runs.py")
    path = tmp_path / "file"
    changed = {}
    for how in script.DAMAGES:
        path.write_bytes(bytes(1_000))
        script.damage(path, how, random.Random(1))
        content = path.read_bytes()
        bits = sum(byte.bit_count() for byte in content)
        changed[how] = (len(content), bits)
    assert changed["a bit"] == (1_000, 1)
    assert changed["64 bytes"] == (1_000, 64 * 8)
    assert 0 < changed["cut off"][0] < 1_000
    assert changed["emptied"] == (0, 0)
