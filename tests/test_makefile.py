"""The targets of the Makefile, with programs in place of Python and pip."""

import os
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Stands for any Python: `-m venv` makes an environment with itself in it, and
# `-m pip install` succeeds where the folder has no file `fail`.
PYTHON = """#!/bin/sh
echo "$@" >> "{log}"
case "$1 $2 $3" in
    "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    "-m pip --version") test -e "$0" ;;
    "-m pip install") test ! -e "{fail}" ;;
esac
"""


class Make:
    """Runs make in the project's folder, with an environment and Python of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.venv = folder / "venv"
        self.fail = folder / "fail"
        self.log = folder / "log"
        self.python = folder / "python"
        self.python.write_text(PYTHON.format(log=self.log, fail=self.fail))
        self.python.chmod(0o755)

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess:
        self.log.write_text("")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
        return subprocess.run(
            ["make", f"VENV={self.venv}", f"PYTHON={self.python}", *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def installed(self) -> list[str]:
        """What the last run had pip install."""
        lines = self.log.read_text().splitlines()
        return [line.split()[-1] for line in lines if line.startswith("-m pip install")]


@pytest.fixture
def make(tmp_path):
    return Make(tmp_path)


def test_lists_the_targets_by_default(make):
    listed = {line.split()[0] for line in make().stdout.splitlines()}
    expected = {
        "demo",
        "test",
        "test-all",
        "test-torch",
        "properties",
        "test-versions",
        "lint",
        "docs",
        "release-check",
        "timit",
        "bench",
        "export-table",
        "faults",
        "reproduce",
        "clean",
        "help",
    }
    assert listed == expected


@pytest.mark.parametrize("order", [("demo", "test", "docs"), ("docs", "test", "demo")])
def test_each_target_installs_what_it_needs(make, order):
    extras = {"demo": ".[speech,plot]", "test": ".[all,dev]", "docs": ".[docs]"}
    for target in order:
        assert make(target).returncode == 0
        assert make.installed() == [extras[target]]
    for target in order:
        assert make(target).returncode == 0
        assert make.installed() == []


def test_requirements_that_changed_are_installed_again(make):
    assert make("demo").returncode == 0
    long_ago = time.time() - 10 * 365 * 86400
    os.utime(make.venv / ".demo", (long_ago, long_ago))
    assert make("demo").returncode == 0
    assert make.installed() == [".[speech,plot]"]


def test_installation_that_failed_is_tried_again(make):
    make.fail.touch()
    result = make("test")
    assert result.returncode != 0
    assert make.installed() == [".[all,dev]"]
    assert "-m pytest" not in make.log.read_text()
    make.fail.unlink()
    assert make("test").returncode == 0
    assert make.installed() == [".[all,dev]"]


def test_failing_command_fails_the_target(make):
    make.python.write_text(make.python.read_text() + '\n[ "$2" != pytest ]\n')
    assert make("test").returncode != 0


@pytest.mark.parametrize("value", [[], ["TIMIT_DIR=/no/such/folder"]])
def test_timit_needs_the_corpus_before_anything_else(make, value):
    result = make("timit", *value)
    assert result.returncode != 0
    assert "TIMIT_DIR must name the folder" in result.stderr
    assert make.log.read_text() == ""


def test_timit_takes_the_corpus(make, tmp_path):
    corpus = tmp_path / "a corpus"
    corpus.mkdir()
    assert make("timit", f"TIMIT_DIR={corpus}", "OUT=in here").returncode == 0
    assert make.log.read_text().splitlines()[-1] == (
        f"examples/timit_splits.py --corpus {corpus} --out in here"
    )


def test_python_that_does_not_exist_is_named(make):
    result = make("test", "PYTHON=no-such-python")
    assert result.returncode != 0
    assert "apt-get install python3 python3-venv" in result.stderr
    assert "Received: PYTHON=no-such-python" in result.stderr


def test_clean_leaves_a_folder_that_is_no_environment(make):
    (make.venv / "mine").mkdir(parents=True)
    lines = make("-n", "clean").stdout.splitlines()
    assert lines[0] == f"if test -f {make.venv}/pyvenv.cfg; then rm -r {make.venv}; fi"
    assert subprocess.run(["sh", "-c", lines[0]], check=False).returncode == 0
    assert (make.venv / "mine").is_dir()
    (make.venv / "pyvenv.cfg").touch()
    subprocess.run(["sh", "-c", lines[0]], check=True)
    assert not make.venv.exists()


def test_an_environment_with_a_blank_is_refused(make):
    """Its two words would be taken for two folders, and both be removed."""
    done = make("-n", "clean", "VENV=my venv")
    assert done.returncode != 0
    assert "VENV must be a path without blanks. Received: VENV=my venv" in done.stderr
