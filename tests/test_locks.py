import errno
import subprocess
import sys
import threading
import time

import filelock
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


def test_another_process_is_refused_until_it_is_killed(holder, tmp_path):
    who = "Another process is using this folder"
    with pytest.raises(BlockingIOError, match=who) as error, locked(tmp_path / "run"):
        pass
    assert str(error.value).endswith(f"Received: {tmp_path / 'run'}")
    assert (tmp_path / "run" / LOCK).exists()
    holder.kill()
    holder.wait()
    with locked(tmp_path / "run"):
        pass


def test_waits_if_told_to(holder, tmp_path):
    started = time.monotonic()
    threading.Timer(0.5, holder.kill).start()
    with locked(tmp_path / "run", wait=True):
        assert time.monotonic() - started > 0.4


def test_the_same_process_has_it_once(tmp_path):
    with locked(tmp_path):
        with (
            pytest.raises(BlockingIOError, match="Another process"),
            locked(tmp_path),
        ):
            pass
        with locked(tmp_path, ".other"):
            pass
    with pytest.raises(KeyError), locked(tmp_path):
        raise KeyError
    with locked(tmp_path):
        pass


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def acquire(*arguments, **options):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(filelock.FileLock, "acquire", acquire)
    with pytest.warns(UserWarning, match="does not support locks"), locked(tmp_path):
        pass
