"""Runs in processes of their own, several at once."""

import functools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.engine import (
    THREADS,
    RunFailedError,
    read_progress,
    run_all,
    run_command,
    run_named,
    share,
    write_progress,
)

ROOT = Path(__file__).resolve().parents[2]
# Waits until the other has begun, too.
MEET = """
import pathlib, sys, time
mine, other = map(pathlib.Path, sys.argv[1:])
mine.write_text("here")
end = time.monotonic() + 60
while not other.exists():
    assert time.monotonic() < end
    time.sleep(0.02)
"""


def commands(codes):
    return {name: [sys.executable, "-c", *code] for name, code in codes.items()}


def run(codes, folder, jobs):
    folders = {name: folder / name for name in codes}
    make = functools.partial(run_named, commands(codes), folders, jobs)
    return dict(run_all(make, folders, jobs))


def test_two_are_at_work_at_once(tmp_path):
    a, b = str(tmp_path / "a-is-here"), str(tmp_path / "b-is-here")
    assert run({"a": [MEET, a, b], "b": [MEET, b, a]}, tmp_path, 2) == {
        "a": None,
        "b": None,
    }


@pytest.mark.parametrize("jobs", [1, 2])
def test_one_that_fails_stops_no_other(tmp_path, jobs):
    written = tmp_path / "written"
    codes = {
        "bad": ["raise SystemExit('there is no such data')"],
        "good": [f"import pathlib; pathlib.Path({str(written)!r}).write_text('x')"],
    }
    found = run(codes, tmp_path, jobs)
    assert found.pop("good") is None
    assert written.exists()
    assert "it ended with status 1" in found["bad"]
    assert ("there is no such data" in found["bad"]) == (jobs > 1)


def test_each_has_its_share_of_the_threads(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(6)))
    code = f"import os; print([os.environ[name] for name in {THREADS}])"
    run_command([sys.executable, "-c", code], tmp_path, jobs=2)
    assert (tmp_path / "log.txt").read_text().strip() == str(["3"] * len(THREADS))
    assert [share(jobs) for jobs in (1, 4, 6, 7)] == [6, 1, 1, 1]


def test_the_log_is_added_to(tmp_path):
    for word in ("first", "second"):
        run_command([sys.executable, "-c", f"print({word!r})"], tmp_path, jobs=2)
    assert (tmp_path / "log.txt").read_text().split() == ["first", "second"]


def test_progress(tmp_path):
    assert read_progress(tmp_path) == 0
    write_progress(tmp_path, 3, 4)
    assert read_progress(tmp_path) == 0.75


STARTER = """
import functools, pathlib, sys
from experiments.engine import run_all, run_named
commands = {{name: [sys.executable, "-c", {code!r}, name] for name in ("a", "b")}}
folders = {{name: pathlib.Path({folder!r}, name) for name in commands}}
list(run_all(functools.partial(run_named, commands, folders, 2), folders, 2))
"""
ENDLESS = """
import os, pathlib, sys, time
pathlib.Path({folder!r}, sys.argv[1] + ".pid").write_text(str(os.getpid()))
time.sleep(600)
"""


@pytest.mark.parametrize("killed", [signal.SIGKILL, signal.SIGTERM])
def test_runs_end_with_the_command_that_started_them(tmp_path, killed):
    code = ENDLESS.format(folder=str(tmp_path))
    starter = STARTER.format(code=code, folder=str(tmp_path))
    process = subprocess.Popen(
        [sys.executable, "-c", starter],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
    )
    pids = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.pid"
        _until(lambda path=path: path.exists() and path.read_text())
        pids.append(int(path.read_text()))
    process.send_signal(killed)
    process.wait(60)
    _until(lambda: not any(map(_lives, pids)))


LATE = """
import pathlib, time
pathlib.Path({folder!r}, "begun").write_text("")
while not pathlib.Path({folder!r}, "on my own").exists():
    time.sleep(0.05)
time.sleep(1.5)
pathlib.Path({folder!r}, "done").write_text("")
"""
ONE = """
import sys
from experiments.engine import run_command
run_command([sys.executable, "-c", {code!r}], None)
"""


def test_a_command_outlives_its_shell(tmp_path):
    """As one that was started by `nohup` does."""
    one = ONE.format(code=LATE.format(folder=str(tmp_path)))
    shell = subprocess.Popen(
        [sys.executable, "-c", SHELL, sys.executable, one],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    _until((tmp_path / "begun").exists)
    shell.kill()
    shell.wait(60)
    (tmp_path / "on my own").write_text("")
    _until((tmp_path / "done").exists)


SHELL = """
import subprocess, sys, time
subprocess.Popen([sys.argv[1], "-c", sys.argv[2]])
time.sleep(600)
"""


def _until(holds):
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def _lives(pid):
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def test_an_error_of_the_function_is_that_of_its_run(tmp_path):
    def make(name):
        raise {"a": BlockingIOError("held"), "b": RunFailedError("no")}[name]

    folders = {"a": tmp_path, "b": tmp_path}
    assert dict(run_all(make, folders, 1)) == {"a": "held", "b": "no"}
