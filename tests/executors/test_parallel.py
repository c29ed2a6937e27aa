import os
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor

import psutil
import pytest

from keras_ortho.executors import in_parallel
from tests.modules import ROOT
from tests.waiting import is_running, until

# A shell that starts the tests in the background has them ignore the interrupt.
STARTER = """
import pathlib, signal, sys, time
from keras_ortho.executors import in_parallel
signal.signal(signal.SIGINT, signal.default_int_handler)
def work(number):
    pathlib.Path(sys.argv[1], str(number)).touch()
    time.sleep(1)
list(in_parallel(work, range(1000), 2, batch_size=1))
"""


def _process(seconds):
    time.sleep(seconds)
    return seconds, os.getpid()


@pytest.mark.slow
def test_in_order_in_other_processes():
    waits = [0.2, 0.0, 0.1]
    found, processes = zip(*in_parallel(_process, waits, 2, batch_size=1), strict=True)
    assert list(found) == waits
    assert os.getpid() not in processes
    with pytest.raises(BrokenExecutor):
        list(in_parallel(os._exit, [1, 1], 2))
    with pytest.raises(ValueError, match="`workers` must be a positive .*workers=0$"):
        next(in_parallel(len, ["a"], 0))


@pytest.mark.slow
@pytest.mark.parametrize("ended", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_their_parent(tmp_path, ended):
    parent = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
    )
    until(lambda: len(list(tmp_path.iterdir())) > 2)
    workers = [child.pid for child in psutil.Process(parent.pid).children(True)]
    parent.send_signal(ended)
    parent.wait(60)
    until(lambda: not any(map(is_running, workers)))
    assert len(list(tmp_path.iterdir())) < 50
