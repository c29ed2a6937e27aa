import os
import platform
import subprocess
import sys
import threading
import time

import pytest

from keras_ortho.locks import LOCK, locked

# Takes the lock, says so, and waits to be killed or for its input to end.
HOLDER = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("locks", sys.argv[1])
locks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(locks)
with locks.locked(sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    module = sys.modules[locked.__module__].__file__
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, module, tmp_path / "run"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_another_process_is_refused_and_told_by_whom(holder, tmp_path):
    who = f"process {holder.pid} on {platform.node()}, since 20"
    with pytest.raises(BlockingIOError, match=who) as error, locked(tmp_path / "run"):
        pass
    assert str(error.value).endswith(f"Received: {tmp_path / 'run'}")
    assert (tmp_path / "run" / LOCK).exists()
    holder.communicate("")
    assert not list((tmp_path / "run").iterdir())
    with locked(tmp_path / "run"):
        pass


def test_no_lock_is_left_by_a_kill(holder, tmp_path):
    holder.kill()
    holder.wait()
    assert (tmp_path / "run" / LOCK).exists()
    with locked(tmp_path / "run"):
        assert str(os.getpid()) in (tmp_path / "run" / LOCK).read_text()
    assert not list((tmp_path / "run").iterdir())


def test_many_wait_for_each_other(tmp_path):
    """Also where one finds the file that another removes just then."""
    entries = []

    def enter():
        for _ in range(500):
            with locked(tmp_path, wait=True):
                entries.append(threading.get_ident())

    threads = [threading.Thread(target=enter) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(entries) == 8 * 500


def test_waits_if_told_to(holder, tmp_path):
    started = time.monotonic()
    threading.Timer(0.5, holder.kill).start()
    with locked(tmp_path / "run", wait=True):
        assert time.monotonic() - started > 0.4


def test_the_same_process_has_it_once(tmp_path):
    with locked(tmp_path):
        with (
            pytest.raises(BlockingIOError, match=f"process {os.getpid()}"),
            locked(tmp_path),
        ):
            pass
        with locked(tmp_path, ".other"):
            pass
    with locked(tmp_path):
        pass


def test_an_error_gives_it_back(tmp_path):
    with pytest.raises(KeyError), locked(tmp_path):
        raise KeyError
    assert not list(tmp_path.iterdir())


def test_one_that_has_not_said_who_it_is(tmp_path, monkeypatch):
    """Neither one that was killed before is named in its place."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    monkeypatch.setattr("keras_ortho.locks.time.sleep", lambda seconds: None)
    killed = f'{{"pid": {ended.pid}, "host": "{platform.node()}"}}'
    for text in ("", "123", '{"a": 1}', killed):
        with locked(tmp_path):
            (tmp_path / LOCK).write_text(text)
            with (
                pytest.raises(BlockingIOError, match="one that has not written to"),
                locked(tmp_path),
            ):
                pass


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def flock(file, operation):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("keras_ortho.locks.fcntl.flock", flock)
    with pytest.warns(UserWarning, match="does not support locks"), locked(tmp_path):
        pass
