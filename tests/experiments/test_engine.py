"""Runs in processes of their own, several at once."""

import os
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from experiments.engine import plain_errors, run_all, run_program
from tests.executors.clusters import cluster
from tests.waiting import is_running, until

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


def script(folder, code, *arguments):
    """The arguments of Python that run some code."""
    path = folder / f"{zlib.crc32(code.encode())}.py"
    path.write_text(code)
    return [str(path), *arguments]


def run(codes, folder, jobs):
    folders = {name: folder / name for name in codes}
    commands = {name: script(folder, *code) for name, code in codes.items()}
    found = run_all(lambda run, name: run(commands[name], folders[name]), folders, jobs)
    return dict(found)


def test_two_are_at_work_at_once(tmp_path):
    a, b = str(tmp_path / "a-is-here"), str(tmp_path / "b-is-here")
    found = run({"a": [MEET, a, b], "b": [MEET, b, a]}, tmp_path, 2)
    assert found == {"a": None, "b": None}


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


def test_one_that_was_broken_off_is_told_to_go_on(tmp_path):
    (tmp_path / "a" / "run").mkdir(parents=True)
    (tmp_path / "a" / "run" / "settings.json").touch()
    code = "import sys; raise SystemExit(sys.argv[-1] == '--resume')"
    found = run({"a": [code], "b": [code]}, tmp_path, 2)
    assert found["b"] is None
    assert "it ended with status 1" in found["a"]


def test_a_program_runs_where_and_as_it_is_told(tmp_path):
    # What it reads is empty, and not for the process that waits for it to write.
    code = "import os, sys; print(os.getcwd(), os.environ['NPROC'], sys.stdin.read())"
    given = str(ROOT), {"NPROC": "3"}
    with pytest.raises(FileNotFoundError, match="file system that all share.*Received"):
        run_program(script(tmp_path, code), tmp_path / "none", *given)
    run_program(script(tmp_path, code), tmp_path, *given)
    assert (tmp_path / "log.txt").read_text().split() == [str(ROOT), "3"]


# A shell that starts the tests in the background has them ignore the interrupt.
STARTER = """
import pathlib, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from experiments.engine import run_all
commands = {{name: [{code!r}, name] for name in ("a", "b")}}
folders = {{name: pathlib.Path({folder!r}, name) for name in commands}}
list(run_all(lambda run, name: run(commands[name], folders[name]), folders, 2))
"""
ENDLESS = """
import os, pathlib, sys, time
pathlib.Path({folder!r}, sys.argv[1] + ".pid").write_text(str(os.getpid()))
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("killed", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_runs_end_with_the_command_that_started_them(tmp_path, killed):
    code = ENDLESS.format(folder=str(tmp_path))
    (path,) = script(tmp_path, code)
    starter = STARTER.format(code=path, folder=str(tmp_path))
    process = subprocess.Popen(
        [sys.executable, "-c", starter],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
    )
    pids = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.pid"
        until(lambda path=path: path.exists() and path.read_text())
        pids.append(int(path.read_text()))
    process.send_signal(killed)
    process.wait(60)
    until(lambda: not any(map(is_running, pids)))


ON_A_CLUSTER = """
import pathlib, sys
from experiments.engine import run_all
address, folder, script = sys.argv[1:]
folders = {name: pathlib.Path(folder, name) for name in ("a", "b")}
def make(run, name):
    run([script, name], folders[name])
list(run_all(make, folders, scheduler=address))
"""


@pytest.mark.slow
def test_runs_on_a_cluster_end_with_the_command(tmp_path):
    (path,) = script(tmp_path, ENDLESS.format(folder=str(tmp_path)))
    with cluster(tmp_path / "dask") as (address, _):
        starter = subprocess.Popen(
            [sys.executable, "-c", ON_A_CLUSTER, address, str(tmp_path), path],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        files = [tmp_path / f"{name}.pid" for name in ("a", "b")]
        until(lambda: all(file.exists() and file.read_text() for file in files))
        pids = [int(file.read_text()) for file in files]
        starter.kill()
        starter.wait(60)
        until(lambda: not any(map(is_running, pids)))


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (ValueError("`a` must be 1. Received: a=2"), 2, "`a` must be 1. Received: a=2"),
        (FileNotFoundError("no such file"), 2, "no such file"),
        (ImportError("install the extra"), 2, "install the extra"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_ends_with_a_line(monkeypatch, capsys, raised, status, said):
    monkeypatch.setattr(sys, "argv", ["/somewhere/adding.py"])
    with pytest.raises(SystemExit) as ended, plain_errors():
        raise raised
    assert ended.value.code == status
    assert capsys.readouterr().err.strip() == f"adding.py: {said}"


def test_other_errors_keep_their_traceback():
    with pytest.raises(TypeError, match="of a mistake"), plain_errors():
        raise TypeError("of a mistake")
