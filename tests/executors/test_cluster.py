"""Work on a Dask cluster of real processes, some of which are killed."""

import functools
import os
import subprocess
import sys
from concurrent.futures import BrokenExecutor

import pytest

from keras_ortho.executors import check_shared, in_parallel
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
STARTER = """
import functools, pathlib, sys
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
NAMES = ("a", "b", "c")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A cluster whose workers are started again, and may be lost twice by a run."""
    setting = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
    with cluster(tmp_path_factory.mktemp("dask"), nanny=True, **setting) as found:
        yield found[0]


def calls(folder):
    path = folder / "calls.txt"
    return path.read_text().splitlines() if path.exists() else []


def test_the_run_of_a_lost_worker_is_made_again(tmp_path):
    with cluster(tmp_path / "dask") as (address, workers):
        starter = subprocess.Popen(
            [sys.executable, "-c", STARTER, address, str(tmp_path), WORK, *NAMES],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        until(lambda: sum(len(calls(tmp_path / name)) for name in NAMES) == 2)
        lost = next(name for name in NAMES if calls(tmp_path / name))
        (call,) = calls(tmp_path / lost)
        (worker,) = (w for w in workers if w.pid == int(call.split()[0]))
        worker.kill()
        (tmp_path / "go").touch()
        said, _ = starter.communicate(timeout=60)
    assert said.split() == ["a", "None", "b", "None", "c", "None"]
    for name in NAMES:
        assert (tmp_path / name / "result.txt").read_text() == str(tmp_path)
    # It goes on, by another worker; no other run is made twice.
    first, second = calls(tmp_path / lost)
    assert first.endswith("[]")
    assert second.endswith("['--resume']")
    assert first.split()[0] != second.split()[0]
    assert sum(len(calls(tmp_path / name)) for name in NAMES) == 4


def test_work_on_the_workers(address, tmp_path):
    work = functools.partial(in_parallel, workers=1, scheduler=address)
    assert list(work(len, ["a", "bc", ""])) == [1, 2, 0]
    with pytest.raises(BrokenExecutor, match="all those workers died"):
        list(work(os._exit, [1]))
    with pytest.raises(FileNotFoundError, match="a file system that all share"):
        list(work(check_shared, [tmp_path / "elsewhere"]))


@pytest.mark.parametrize("bad", ["nowhere", "ftp://here:1", "tls://here:1"])
def test_the_address_must_be_that_of_a_scheduler(bad):
    pytest.importorskip("distributed")
    with pytest.raises(ValueError, match=f"`scheduler` must be .*Received: {bad}"):
        list(in_parallel(len, ["a"], 1, bad))
