import errno
import os
import subprocess
import sys
import threading
import time

import filelock
import pytest

from keras_ortho.files import locked, naming, read_bytes, read_json, replacing
from tests.modules import ROOT


def test_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "result.txt"
    with replacing(path) as aside:
        aside.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"

    def fsync(file):  # It must be on the disk before it has its name.
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="Input/output"), replacing(path) as aside:
        aside.write_text("other")
    with pytest.raises(RuntimeError), replacing(path) as aside:
        raise RuntimeError
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_keeps_permissions_and_links(tmp_path):
    path = tmp_path / "store" / "a"
    path.parent.mkdir()
    path.write_text("old")
    path.chmod(0o600)
    link = tmp_path / "result.txt"
    link.symlink_to(path)
    with replacing(link) as aside:
        aside.write_text("new")
        assert aside.name.endswith("result.txt")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_an_error_names_the_file(tmp_path):
    path = tmp_path / "values.json"
    for text, message in (
        (b'{"loss": 0.5', "JSONDecodeError: Expecting"),
        (b'{"loss": "\xff"}', "UnicodeDecodeError: 'utf-8' codec"),
        (b"[1]", "TypeError: list indices must be"),
        (b'{"gain": 1}', "KeyError: 'loss'"),
    ):
        path.write_bytes(text)
        expected = f"The file is damaged.* Received: {path}: {message}"
        with pytest.raises(ValueError, match=expected):
            read_json(path, ["loss"])
    with pytest.raises(ValueError, match=f"at most 5 bytes. Received: {path} of 11"):
        read_bytes(path, 5)
    with pytest.raises(ValueError, match=f"Received: {path}: IndexError"), naming(path):
        raise IndexError
    with pytest.raises(FileNotFoundError), naming(tmp_path / "none"):
        read_bytes(tmp_path / "none", 5)


# Takes the lock, says so, and waits to be killed or for its input to end.
HOLDER = """
import sys
from keras_ortho.files import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_one_process_has_a_folder_until_it_is_killed(tmp_path):
    command = [sys.executable, "-c", HOLDER, tmp_path]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as holder:
        assert holder.stdout.readline() == "held\n"
        who = f"Another process is using this folder.* Received: {tmp_path}$"
        with pytest.raises(BlockingIOError, match=who), locked(tmp_path):
            pass
        started = time.monotonic()
        threading.Timer(0.5, holder.kill).start()
        with locked(tmp_path, wait=True):
            assert time.monotonic() - started > 0.4
            with pytest.raises(BlockingIOError), locked(tmp_path):
                pass
            with locked(tmp_path, ".other"):
                pass


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def acquire(*arguments, **options):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(filelock.FileLock, "acquire", acquire)
    with pytest.warns(UserWarning, match="does not support locks"), locked(tmp_path):
        pass
