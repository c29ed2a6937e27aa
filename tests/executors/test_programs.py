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
    return Program([str(path), *arguments], folder, seen=folder, **own)


def test_has_its_threads(tmp_path):
    code = f"import os; print([os.environ[name] for name in {THREADS}])"
    run_program(program(tmp_path, code, threads=3))
    assert (tmp_path / "log.txt").read_text().strip() == str(["3"] * len(THREADS))


def test_the_log_is_added_to(tmp_path):
    for word in ("first", "second"):
        # What it reads is empty, and not for the process that waits for it to write.
        code = f"import sys; print({word!r}, sys.stdin.read())"
        run_program(program(tmp_path, code, threads=1))
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
    made = Program(["-m", "this"], tmp_path, seen=tmp_path / "not here")
    with pytest.raises(FileNotFoundError, match="file system that all share.*Received"):
        run_program(made)


def test_an_interrupt_ends_what_runs(tmp_path):
    code = "import pathlib, time; pathlib.Path('begun').touch(); time.sleep(600)"
    begun = tmp_path / "begun"
    with pytest.raises(ProgramFailedError, match="given up"):
        run_program(program(tmp_path, code, cwd=tmp_path), begun.exists)
