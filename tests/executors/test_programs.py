"""Programs, which end with the process that waits for them."""

import os
import subprocess
import sys
import threading

import pytest

from keras_ortho.executors import open_executor
from keras_ortho.executors.programs import (
    THREADS,
    Program,
    ProgramFailedError,
    run_program,
    share,
)
from tests.waiting import until


def program(folder, code, *arguments, **own):
    return Program([sys.executable, "-c", code, *arguments], folder, seen=folder, **own)


def test_has_its_share_of_the_threads(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(6)))
    assert [share(tasks) for tasks in (1, 4, 6, 7)] == [6, 1, 1, 1]
    code = f"import os; print([os.environ[name] for name in {THREADS}])"
    run_program(program(tmp_path, code, threads=3))
    assert (tmp_path / "log.txt").read_text().strip() == str(["3"] * len(THREADS))


def test_the_log_is_added_to(tmp_path):
    for word in ("first", "second"):
        run_program(program(tmp_path, f"print({word!r})", threads=1))
    assert (tmp_path / "log.txt").read_text().split() == ["first", "second"]


def test_one_that_fails_says_the_last_that_it_said(tmp_path):
    with pytest.raises(ProgramFailedError, match="status 1: there is no such data"):
        run_program(program(tmp_path, "raise SystemExit('there is no such data')"))


def test_its_folder_and_environment_are_those_of_who_made_it(tmp_path, monkeypatch):
    there = tmp_path / "there"
    there.mkdir()
    monkeypatch.chdir(there)
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    code = "import os; print(os.getcwd(), os.environ['KERAS_BACKEND'])"
    made = program(tmp_path, code)
    monkeypatch.chdir("/")
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    run_program(made)
    assert (tmp_path / "log.txt").read_text().split() == [str(there), "jax"]


def test_is_told_to_go_on_where_it_was_broken_off(tmp_path):
    begun = tmp_path / "begun"
    code = "import sys; print(sys.argv[1:]); open(sys.argv[1], 'w')"
    for _ in range(2):
        run_program(program(tmp_path, code, str(begun), resume=(begun, "--resume")))
    first, second = (tmp_path / "log.txt").read_text().splitlines()
    assert first == str([str(begun)])
    assert second == str([str(begun), "--resume"])


def test_one_that_sees_other_files_is_not_run(tmp_path):
    made = Program([sys.executable, "-c", ""], tmp_path, seen=tmp_path / "not here")
    with pytest.raises(FileNotFoundError, match="file system that all share.*Received"):
        run_program(made)


ENDLESS = """
import pathlib, sys, time
pathlib.Path(sys.argv[1]).touch()
while True:
    time.sleep(0.1)
"""
LEAVER = """
import pathlib, sys
from keras_ortho.executors.programs import Program, run_program
folder = pathlib.Path(sys.argv[1])
run_program(Program([sys.executable, "-c", *sys.argv[2:]], folder, seen=folder))
"""
# Deaf to the signal, as one may be whose host has lost its disk.
ORPHAN = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
begun, end = map(pathlib.Path, sys.argv[1:])
begun.touch()
while not end.exists():
    time.sleep(0.02)
print("orphan", flush=True)
"""


def test_waits_for_one_that_was_left_behind(tmp_path):
    begun, end = tmp_path / "begun", tmp_path / "end"
    orphan = [ORPHAN, str(begun), str(end)]
    leaver = subprocess.Popen([sys.executable, "-c", LEAVER, str(tmp_path), *orphan])
    until(begun.exists)
    leaver.kill()
    leaver.wait()
    threading.Timer(1, end.touch).start()
    run_program(program(tmp_path, "print('again')"))
    assert (tmp_path / "log.txt").read_text().split() == ["orphan", "again"]


def test_an_interrupt_ends_what_runs_and_what_waits(tmp_path):
    def interrupted():
        with open_executor(1, programs=True) as executor:
            for each in made:
                futures.append(executor.submit(run_program, each))
            until((tmp_path / "a" / "begun").exists)
            raise KeyboardInterrupt

    futures = []
    for name in "ab":
        (tmp_path / name).mkdir()
    made = [program(p, ENDLESS, str(p / "begun")) for p in map(tmp_path.joinpath, "ab")]
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with pytest.raises(ProgramFailedError, match="given up"):
        futures[0].result()
    assert futures[1].cancelled()


@pytest.mark.parametrize("programs", [False, True])
def test_workers_must_be_positive(programs):
    with (
        pytest.raises(ValueError, match="`workers` must be a positive .*workers=0$"),
        open_executor(0, programs=programs),
    ):
        pass
