"""Work on a Dask cluster of real processes, some of which are killed."""

import functools
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor

import pytest

from experiments.engine import run_all, run_named
from keras_ortho.executors.parallel import check_shared, in_parallel, open_cluster
from keras_ortho.executors.programs import task_cores
from keras_ortho.processors import processor_count
from tests.executors.clusters import ROOT, cluster
from tests.waiting import until

# Says that it has begun, waits until it may end, and says how it was called.
WORK = """
import os, pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
(folder / "run").mkdir(parents=True, exist_ok=True)
(folder / "run/settings.json").touch()
with open(folder / "calls.txt", "a") as file:
    print(os.getppid(), sys.argv[2:], file=file, flush=True)
while not (folder.parent / "go").exists():
    time.sleep(0.02)
(folder / "result.txt").write_text(os.getcwd())
"""
KILLS_ITS_WORKER = """
import os, signal, sys, time
print("called", file=open(sys.argv[1] + "/calls.txt", "a"), flush=True)
os.kill(os.getppid(), signal.SIGKILL)
time.sleep(60)
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A cluster whose workers are started again, and may be lost twice by a run."""
    setting = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
    with cluster(tmp_path_factory.mktemp("dask"), nanny=True, **setting) as found:
        yield found[0]


def run(folder, address, codes, **own):
    folders = {name: folder / name for name in codes}
    commands = {}
    for name, code in codes.items():
        (folder / f"{name}.py").write_text(code)
        commands[name] = [str(folder / f"{name}.py"), str(folders[name])]
    make = functools.partial(run_named, commands, folders)
    return dict(run_all(make, folders, scheduler=address, **own))


def calls(folder):
    path = folder / "calls.txt"
    return path.read_text().splitlines() if path.exists() else []


def test_the_run_of_a_lost_worker_is_made_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ("a", "b", "c")
    with cluster(tmp_path / "dask") as (address, workers):
        starter = subprocess.Popen(
            [sys.executable, "-c", STARTER, address, str(tmp_path), WORK, *names],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        begun = functools.partial(filter, lambda name: calls(tmp_path / name))
        until(lambda: len(list(begun(names))) == 2)
        lost = next(begun(names))
        (call,) = calls(tmp_path / lost)
        (worker,) = (w for w in workers if w.pid == int(call.split()[0]))
        worker.kill()
        (tmp_path / "go").touch()
        said, _ = starter.communicate(timeout=60)
    assert said.split() == ["a", "None", "b", "None", "c", "None"]
    for name in names:
        assert (tmp_path / name / "result.txt").read_text() == str(tmp_path)
    # It goes on, by another worker; no other run is made twice.
    first, second = calls(tmp_path / lost)
    assert first.endswith("[]")
    assert second.endswith("['--resume']")
    assert first.split()[0] != second.split()[0]
    assert all(len(calls(tmp_path / name)) == 1 for name in set(names) - {lost})


# A shell that starts the tests in the background has them ignore the interrupt.
STARTER = """
import functools, pathlib, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from experiments.engine import run_all, run_named
address, folder, code, *names = sys.argv[1:]
folders = {name: pathlib.Path(folder, name) for name in names}
script = pathlib.Path(folder, "work.py")
script.write_text(code)
commands = {name: [str(script), str(folders[name])] for name in names}
make = functools.partial(run_named, commands, folders)
for name, wrong in sorted(run_all(make, folders, scheduler=address)):
    print(name, wrong)
"""


@pytest.mark.slow
def test_a_run_that_kills_its_workers_ends_with_an_error(tmp_path, address):
    (tmp_path / "go").touch()
    codes = {"bad": KILLS_ITS_WORKER, "good": WORK, "other": "1 / 0"}
    found = run(tmp_path, address, codes, jobs=1)
    assert found["bad"].startswith("KilledWorker: Attempted to run task")
    assert len(calls(tmp_path / "bad")) == 2
    assert found["good"] is None
    assert "status 1: ZeroDivisionError" in found["other"]


@pytest.mark.parametrize("ended", [signal.SIGINT, signal.SIGKILL])
def test_runs_end_with_the_command(tmp_path, address, ended):
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, address, str(tmp_path), WORK, "a", "b", "c"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
    )
    names = ("a", "b", "c")
    until(lambda: sum(len(calls(tmp_path / name)) for name in names) == 2)
    starter.send_signal(ended)
    starter.wait(60)
    # Both workers are free again, before any run could end by itself.
    with open_cluster(address) as client:
        naps = [client.submit(time.sleep, 0.2, pure=False) for _ in range(2)]
        assert [nap.result(30) for nap in naps] == [None, None]
    assert not list(tmp_path.glob("*/result.txt"))
    assert sum(len(calls(tmp_path / name)) for name in names) == 2


def test_work_that_kills_its_workers_breaks_the_executor(address):
    with pytest.raises(BrokenExecutor, match="all those workers died"):
        list(in_parallel(os._exit, [1], 1, address))


def test_a_worker_knows_its_cores(address):
    with open_cluster(address) as client:
        assert client.submit(task_cores, pure=False).result(300) == 1  # Its own.


def test_a_process_knows_its_cores_without_dask(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert task_cores() == processor_count()


def test_other_files_are_noticed(tmp_path, address):
    with pytest.raises(FileNotFoundError, match="a file system that all share"):
        list(in_parallel(check_shared, [tmp_path / "elsewhere"], 1, address))


@pytest.mark.parametrize(
    "bad", ["nowhere", "ftp://here:1", "tcp://here:one", "ucx://here:1", "tls://here:1"]
)
def test_the_address_must_be_that_of_a_scheduler(bad, monkeypatch):
    distributed = pytest.importorskip("distributed")
    # When one is let go that could not begin, the process waits 20 s for it.
    monkeypatch.delattr(distributed, "Client")
    with pytest.raises(ValueError, match=f"`scheduler` must be .*Received: {bad}"):
        list(in_parallel(len, ["a"], 1, bad))


def test_in_order_on_the_workers(address):
    assert list(in_parallel(len, ["a", "bc", ""], 1, address)) == [1, 2, 0]
