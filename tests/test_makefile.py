"""The targets of the Makefile, with a program in place of Python and pip."""

import os
import re
import subprocess
import time

import pytest

from tests.modules import ROOT

# Stands for any Python: `-m venv` makes an environment with itself in it, and
# `-m pip install` succeeds where the folder has no file `fail`.
PYTHON = """#!/bin/sh
echo "$@" >> "{0}/log"
case "$1 $2 $3" in
    "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    "-m pip --version") test -e "$0" ;;
    "-m pip install") test ! -e "{0}/fail" ;;
esac
"""


@pytest.fixture
def make(tmp_path):
    """Runs make, and returns how it ended, and what the last run had pip install."""
    log, python = tmp_path / "log", tmp_path / "python"
    python.write_text(PYTHON.format(tmp_path))
    python.chmod(0o755)

    def run(*arguments):
        log.write_text("")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
        command = ["make", f"VENV={tmp_path}/venv", f"PYTHON={python}", *arguments]
        options = {"cwd": ROOT, "env": environment, "text": True}
        done = subprocess.run(command, **options, capture_output=True, check=False)
        return done, re.findall(r"^-m pip install .* (\S+)$", log.read_text(), re.M)

    return run


def test_lists_the_targets_by_default(make):
    listed = [line.split()[0] for line in make()[0].stdout.splitlines()]
    assert {"help", "demo", "test", "docs", "timit", "reproduce"} <= {*listed}


def test_each_target_installs_what_it_needs_once(make, tmp_path):
    extras = {"demo": ".[speech,plot]", "test": ".[all,dev]", "docs": ".[docs]"}
    for target, extra in extras.items():
        assert make(target)[1] == [extra]
        done, installed = make(target)
        assert (done.returncode, installed) == (0, [])
    long_ago = time.time() - 10 * 365 * 86400
    os.utime(tmp_path / "venv" / ".demo", (long_ago, long_ago))
    (tmp_path / "fail").touch()  # Which is tried again.
    for code in (2, 0):
        done, installed = make("demo")
        assert (done.returncode, installed) == (code, [extras["demo"]])
        (tmp_path / "fail").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["timit"], "TIMIT_DIR must name the folder"),
        (["test", "PYTHON=no-such-python"], "apt-get install python3 python3-venv"),
        (["-n", "clean", "VENV=my venv"], "VENV must be a path without blanks"),
    ],
)
def test_what_is_missing_is_named(make, arguments, message):
    done, _ = make(*arguments)
    assert done.returncode != 0
    assert message in done.stderr


def test_clean_leaves_a_folder_that_is_no_environment(make, tmp_path):
    (tmp_path / "venv" / "mine").mkdir(parents=True)
    command, *_ = make("-n", "clean")[0].stdout.splitlines()
    assert subprocess.run(["sh", "-c", command], check=False).returncode == 0
    assert (tmp_path / "venv" / "mine").is_dir()
