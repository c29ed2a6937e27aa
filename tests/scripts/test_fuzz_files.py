"""Damaged files of every format: the short form of `make fuzz`, and what it finds."""

from pathlib import Path

import pytest

from tests.modules import run_python

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
SCRIPT = SCRIPTS / "fuzz_files.py"


@pytest.fixture
def fuzzing(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))


def test_readers_without_tensorflow(fuzzing):
    from fuzzing.formats import FORMATS

    names = [name for name, form in FORMATS.items() if not form.tensorflow]
    options = [option for name in names for option in ("--format", name)]
    printed = run_python(SCRIPT, "--mutations", 900, "--seed", 7, *options)
    lines = printed.splitlines()
    assert [line[:15].strip() for line in lines[1:-1]] == names
    cases, failures = (int(lines[-1].split()[place]) for place in (0, 3))
    assert (cases, failures) == (900, 0)
    # Good files were damaged, and not all of them beyond recognition.
    assert sum(int(line[15:].split()[1]) for line in lines[1:-1]) > 90


def test_shards(fuzzing, tmp_path):
    from fuzzing.formats import FORMATS
    from fuzzing.worker import run

    done = run("shard", FORMATS["shard"], range(10), 7, tmp_path, limited=False)
    assert done["failures"] == []
    assert done["counts"]["refused"] > 2
    assert sum(done["counts"].values()) == 10


FAULTY = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
import fuzz_files
fuzz_files._import_readers_alone()
from fuzzing.formats import Format, Seed
from fuzzing.worker import serve
from pathlib import Path

GOOD = b"good" * 100

def faulty(fault):
    def read(path):
        content = path.read_bytes()
        if content != GOOD:
            fault(path)
    return Format("file", lambda: [Seed(GOOD)], read)

def refuse(path):
    raise ValueError(f"damaged. Received: {path}")

def touch(size):
    held = bytearray(size)
    held[::4096] = bytes(len(held[::4096]))

formats = {
    "sound": faulty(refuse),
    "unnamed": faulty(lambda path: int("x")),
    "other error": faulty(lambda path: {}["key"]),
    "huge": faulty(lambda path: bytes(2**37)),
    "large": faulty(lambda path: touch(3 * 2**25)),
    "dead": faulty(lambda path: os.abort()),
}
serve(formats, Path(sys.argv[3]), 0)
"""


def test_what_is_found(fuzzing, tmp_path):
    from fuzz_files import Worker

    worker = Worker(tmp_path, 0, ["-c", FAULTY, str(SCRIPTS)])
    found = worker.run("sound", 0, 30)
    assert found["failures"] == []
    assert found["counts"]["refused"] > 25
    for name, reason in (
        ("unnamed", "does not name the file: ValueError"),
        ("other error", "KeyError"),
        ("huge", "MemoryError"),
        ("large", "MemoryError|bytes of memory for a file of"),
        ("dead", "the process ended with status -6"),
    ):
        result = worker.run(name, 5, 3)
        assert result["counts"]["failed"] == len(result["failures"]) > 0
        for number, said in result["failures"]:
            assert 5 <= number < 8
            assert any(part in said for part in reason.split("|"))
    worker.close()
    assert worker.process.returncode == 0
