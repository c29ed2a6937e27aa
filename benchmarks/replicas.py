"""Measures the throughput of two replicas relative to one, with one core each.

One replica trains on one core; two train on two cores, each on half of the same batch.
The two replicas are JAX processes, each pinned to its own core, that communicate over
the loopback interface; or two devices of one process on both cores, in JAX
(`DataParallel`) and in TensorFlow (`MirroredStrategy`).

Run it as `python benchmarks/replicas.py [--cores 0 1] [--ways processes] [--units 256]`
while nothing else runs on these cores. It writes a table of the sequences per second of
one replica and of two, and their ratio.
"""

import argparse
import json
import os
import statistics
from pathlib import Path
from typing import Any

from distribution import WAYS, Way, free_port
from machine import ROOT, machine, versions
from options import positive_int
from processes import run_together
from replica_steps import REPLICAS, RUNS

from experiments.tables import table
from keras_ortho.files import replacing

# One thread of each library, because each replica has one core.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def main() -> None:
    """Runs the command."""
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    alone: dict[str, float] = {}
    cells = []
    for way in [way for way in WAYS if way.name in options.ways]:
        if way.backend not in alone:
            alone[way.backend] = rate(options, "one", way.backend)
        one, two = alone[way.backend], rate(options, way.name, way.backend)
        cells.append([titled(way), f"{one:,.0f}", f"{two:,.0f}", f"{two / one:.2f}"])
    about = machine()
    titles = ["way", "one replica", "two replicas", "ratio"]
    lines = table(titles, cells, right=True)
    lines += [
        "",
        f"(Sequences in a second, the median of {RUNS} runs of {options.updates} "
        f"updates; `{options.network}`, n = {options.units}, T = {options.steps}, "
        f"batches of {options.batch}, float32; cores {options.cores} of "
        f"{about['processor']}; {about['commit']}, {versions(about)}.)",
    ]
    text = "\n".join(lines) + "\n"
    with replacing(options.out / "replicas.md") as aside:
        aside.write_text(text)
    print(text)


def titled(way: Way) -> str:
    """Returns the title of a way, with its backend."""
    return f"{way.title} ({'JAX' if way.backend == 'jax' else 'TensorFlow'})"


def rate(options: argparse.Namespace, way: str, backend: str) -> float:
    """Measures the throughput of one way of training."""
    flags = os.environ.get("XLA_FLAGS", "")
    if way == "devices":
        flags = f"{flags} --xla_force_host_platform_device_count={REPLICAS}"
    environment = {
        **os.environ,
        **ONE_THREAD,
        "CUDA_VISIBLE_DEVICES": "",
        "JAX_PLATFORMS": "cpu",
        "KERAS_BACKEND": backend,
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "XLA_FLAGS": flags.strip(),
    }
    names = ("network", "units", "steps", "batch", "updates")
    task: dict[str, Any] = {name: getattr(options, name) for name in names}
    task |= {"way": way, "address": f"127.0.0.1:{free_port()}"}
    first, second = options.cores
    cores = [[first, second]]
    if way == "one":
        cores = [[first]]
    elif way == "processes":
        cores = [[first], [second]]
    tasks = [{**task, "process": i, "cores": own} for i, own in enumerate(cores)]
    said = run_together("replica_steps.py", tasks, environment)
    found = next(row for row in said[0].splitlines() if row.startswith("RESULT "))
    seconds = statistics.median(json.loads(found.removeprefix("RESULT ")))
    return options.batch * options.updates / seconds


def parse() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    names = [way.name for way in WAYS]
    add("--ways", nargs="+", choices=names, default=names, help="(all)")
    add("--cores", nargs=2, type=int, default=[0, 1], help="(0 1)")
    network = "ScoRNN(n)"
    add("--network", default=network, help=f"expression ({network})")
    add("--units", type=positive_int, default=256, help="n (256)")
    add("--steps", type=positive_int, default=100, help="of a sequence (100)")
    add("--batch", type=positive_int, default=128, help="of all replicas (128)")
    add("--updates", type=positive_int, default=10, help="of a run (10)")
    add("--out", type=Path, default=Path("out/replicas"))
    options = parser.parse_args()
    if options.batch % REPLICAS:
        parser.error(f"--batch must be even. Received: {options.batch}")
    available = os.sched_getaffinity(0)
    if len(set(options.cores)) < REPLICAS or not available.issuperset(options.cores):
        parser.error(
            f"--cores must be two of {sorted(available)}. Received: {options.cores}"
        )
    return options


if __name__ == "__main__":
    main()
