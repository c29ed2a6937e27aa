"""Measures the throughput of the run executor with one worker and with two.

All runs execute `examples/adding.py` for a fixed number of updates, with the seeds 0,
1, and so on: on the workers of a Dask cluster, each with one thread on a core of its
own, or (`--local`) in as many processes of this machine. The time extends from the
first submitted run to the end of the last, without the start of the workers.

Run it as `python benchmarks/executor.py [--workers 1 2] [--runs 8] [--steps 400]`, on
cores that have nothing else to do.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from machine import ROOT, machine
from options import positive_int

from keras_ortho.data_prep.storage import write_json
from keras_ortho.extras import require

sys.path.append(str(ROOT))  # The experiments are not installed.

from experiments.engine import RunScript, run_all

# Time limit for the start of the scheduler, and of the workers.
SECONDS = 120


@contextlib.contextmanager
def cluster(folder: Path, cores: list[int]) -> Iterator[str]:
    """Runs a Dask scheduler and one worker per core; yields the scheduler's address."""
    distributed = require("distributed", extra="cluster")
    file = str(folder / "scheduler.json")
    dask = [sys.executable, "-m", "dask"]
    common = ["--no-dashboard", "--scheduler-file", file]
    worker = [*dask, "worker", *common, "--nthreads", "1"]
    commands = [
        [*dask, "scheduler", *common, "--host", "127.0.0.1", "--port", "0"],
        *(["taskset", "--cpu-list", str(core), *worker] for core in cores),
    ]
    with contextlib.ExitStack() as processes, (folder / "dask.log").open("wb") as log:
        for command in commands:
            process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
            processes.callback(process.wait)
            processes.callback(process.terminate)
        end = time.monotonic() + SECONDS
        while not Path(file).exists():
            if time.monotonic() > end:
                raise TimeoutError(f"The scheduler does not start: {folder}/dask.log")
            time.sleep(0.1)
        with distributed.Client(scheduler_file=file, set_as_default=False) as client:
            client.wait_for_workers(len(cores), timeout=SECONDS)
            yield client.scheduler.address


def measure(folder: Path, workers: int, options: argparse.Namespace) -> float:
    """Returns the time in seconds that a number of workers takes for all runs."""
    own = sorted(os.sched_getaffinity(0))
    if len(own) < workers:
        raise ValueError(
            f"`--workers` must be at most the number of cores, {len(own)}. "
            f"Received: {workers}"
        )
    folders = {f"seed-{n}": folder / f"seed-{n}" for n in range(options.runs)}
    script = [str(ROOT / "examples" / "adding.py"), "--model", "scornn"]
    sizes = ["--steps", str(options.steps), "--units", "64", "--length", "100"]
    commands = {
        name: [*script, *sizes, "--seed", name.removeprefix("seed-"), "--out", str(out)]
        for name, out in folders.items()
    }

    def make(run: RunScript, name: str) -> None:
        run(commands[name], folders[name])

    folder.mkdir()
    with contextlib.ExitStack() as stack:
        address = None
        jobs: int | None = None
        if options.local:
            os.sched_setaffinity(0, own[:workers])
            stack.callback(os.sched_setaffinity, 0, own)
            jobs = workers
        else:
            address = stack.enter_context(cluster(folder, own[:workers]))
        start = time.perf_counter()
        ended = dict(run_all(make, folders, jobs, address))
        seconds = time.perf_counter() - start
    failed = [f"{name}: {wrong}" for name, wrong in ended.items() if wrong]
    if failed:
        raise RuntimeError("\n".join(failed))
    return seconds


def main() -> None:
    """Runs the benchmark, prints the result and writes it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--workers", type=positive_int, nargs="+", default=[1, 2], help="(1 2)")
    add("--runs", type=positive_int, default=8, help="a multiple of each of them (8)")
    add("--steps", type=positive_int, default=400, help="updates of a run (400)")
    add("--repeats", type=positive_int, default=3, help="(3)")
    add("--local", action="store_true", help="by processes of this machine, no cluster")
    add("--out", type=Path, default=ROOT / "out" / "benchmarks" / "executor.json")
    options = parser.parse_args()
    times: dict[int, list[float]] = {workers: [] for workers in options.workers}
    with tempfile.TemporaryDirectory() as name:
        # In alternation, so that other load slows all of them equally.
        for repeat in range(options.repeats):
            for workers, found in times.items():
                folder = Path(name) / f"{workers}-workers-{repeat}"
                found.append(measure(folder, workers, options))
    medians = {workers: statistics.median(found) for workers, found in times.items()}
    slowest = medians[min(medians)]
    result = machine() | {
        "runs": options.runs,
        "steps": options.steps,
        "local": options.local,
        "seconds": times,
        "throughput": {workers: slowest / m for workers, m in medians.items()},
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    result = json.loads(json.dumps(result))
    write_json(options.out, result)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
