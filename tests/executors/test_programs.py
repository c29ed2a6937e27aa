"""Programs, which end with the process that waits for them."""

import pytest

from keras_ortho.executors.programs import (
    THREADS,
    Program,
    ProgramFailedError,
    run_program,
)


def program(folder, code, *arguments, **own):
    path = folder / "program.py"
    path.write_text(code)
    return Program([str(path), *arguments], folder, **{"seen": folder, **own})


def test_runs_as_who_made_it_would(tmp_path, monkeypatch):
    """In its folder, with its environment and threads; and it is resumed."""
    begun = tmp_path / "begun"
    code = """
import os, sys
names = ["KERAS_BACKEND", *sys.argv[2].split()]
# What it reads is empty, and not for the process that waits for it to write.
print(os.getcwd(), *map(os.environ.get, names), *sys.argv[3:], sys.stdin.read())
open(sys.argv[1], "w")
"""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    arguments = str(begun), " ".join(THREADS)
    made = program(tmp_path, code, *arguments, threads=3, resume=(begun, "--resume"))
    monkeypatch.chdir("/")
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    run_program(made)
    run_program(made)
    first, second = (tmp_path / "log.txt").read_text().splitlines()
    assert first.split() == [str(tmp_path), "jax", *["3"] * len(THREADS)]
    assert second.split() == [*first.split(), "--resume"]


def test_what_goes_wrong(tmp_path):
    with pytest.raises(ProgramFailedError, match="status 1: there is no such data"):
        run_program(program(tmp_path, "raise SystemExit('there is no such data')"))
    with pytest.raises(FileNotFoundError, match="file system that all share.*Received"):
        run_program(program(tmp_path, "pass", seen=tmp_path / "not here"))
    code = "import pathlib, time; pathlib.Path('begun').touch(); time.sleep(600)"
    begun = tmp_path / "begun"
    with pytest.raises(ProgramFailedError, match="given up"):
        run_program(program(tmp_path, code, cwd=tmp_path), begun.exists)
