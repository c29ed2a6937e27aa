"""A Dask cluster of real processes on this machine."""

import contextlib
import itertools
import os
import subprocess
import sys

import pytest

from tests.modules import ROOT
from tests.waiting import until


@contextlib.contextmanager
def cluster(folder, workers=2, nanny=False, **settings):
    """Yields the address of a cluster and the processes of its workers.

    Each worker has one thread on a core of its own, if there are as many, and works in
    a folder that is not the client's. With a nanny it is started again when it has
    died; without one its process is the worker.
    """
    distributed = pytest.importorskip("distributed")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "scheduler.json"
    env = {**os.environ, "PYTHONPATH": str(ROOT), **settings}
    cores = itertools.cycle(sorted(os.sched_getaffinity(0)))

    def start(*command):
        pinned = ["taskset", "--cpu-list", str(next(cores)), sys.executable]
        options = ["--scheduler-file", str(file), "--no-dashboard"]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        command = [*pinned, "-m", "dask", *command, *options]
        process = subprocess.Popen(command, cwd=folder, env=env, **silent)
        processes.callback(process.wait, 60)
        processes.callback(process.terminate)
        return process

    with contextlib.ExitStack() as processes:
        start("scheduler", "--host", "127.0.0.1", "--port", "0")
        worker = "worker", "--nthreads", "1", "--nanny" if nanny else "--no-nanny"
        own = [start(*worker) for _ in range(workers)]
        until(file.exists)
        given = {"scheduler_file": str(file), "set_as_default": False}
        with distributed.Client(**given) as client:
            client.wait_for_workers(workers, timeout=60)
            address = client.scheduler.address
        yield address, own
