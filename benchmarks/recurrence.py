"""Measures the recurrence against the layers that a user would choose instead.

Measures training and inference time, compile time and peak memory of `ScoRNN` and
`RNN(ScoRNNCell)`; of Keras's `SimpleRNN`, `LSTM` and `GRU`, the latter two with equal
units and with equal parameters; of PyTorch's orthogonal `nn.RNN` (extra `torch`); and
of the bare matrix products and the Cayley transform. All candidates of a shape run in
alternation in one process (PyTorch in another). Peak memory is measured in a separate
process for each candidate. `KERAS_BACKEND` chooses the backend, which runs on its
default device, a CPU or a GPU.

Run it as `python benchmarks/recurrence.py [--form short] [--out out/benchmarks]`. It
writes a table, a JSON file and plots of the training time against units, steps and
batch size. On two cores, the form `short` takes a few minutes, `axes` most of an hour,
and `grid` a day.
"""

import argparse
import itertools
import os
from pathlib import Path
from typing import Any

from options import positive_int
from plots import Panel, plot
from processes import run
from reports import write_report
from tqdm import tqdm

UNITS, STEPS, BATCHES = (128, 170, 360, 512), (200, 784, 2_000, 10_000), (20, 50, 128)
CENTER = (170, 784, 128)
ADDING = (170, 750, 50)
# Batch size 20, because the LSTM's time steps for a batch of 128 would fill the memory.
LONG = [(170, steps, 20) for steps in STEPS]
# The states alone take 0.8 GB.
LONGEST = (128, 100_000, 16)
NAMES = (
    "SimpleRNN",
    "ScoRNN",
    "RNN(ScoRNNCell)",
    "ScoRNN, recompute",
    "LSTM",
    "GRU",
    "LSTM, equal parameters",
    "GRU, equal parameters",
    "torch RNN, orthogonal",
    "matrix products",
    "Cayley transform",
)
IN_MEMORY = ("SimpleRNN", "ScoRNN", "ScoRNN, recompute", "LSTM", "GRU")

PANELS = (
    Panel("units n", "units", {"steps": 784, "batch": 128}),
    Panel("steps T", "steps", {"units": 170, "batch": 20}),
    Panel("batch B", "batch", {"units": 170, "steps": 784}),
)

Shape = tuple[int, int, int]


def shapes(form: str) -> list[Shape]:
    """Lists the shapes of a form."""
    if form == "short":
        return [CENTER, ADDING]
    if form == "grid":
        return list(itertools.product(UNITS, STEPS, BATCHES))
    found = [CENTER, ADDING, *LONG]
    found += [(units, *CENTER[1:]) for units in UNITS]
    found += [(*CENTER[:2], batch) for batch in BATCHES]
    return list(dict.fromkeys(found))


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Formats the measurements, and the ratios of the times to those of `SimpleRNN`."""
    lines = [
        "| n | T | B | XLA | | training step, ms | over SimpleRNN | inference, ms "
        "| over SimpleRNN | compile, s | peak memory, MiB |",
        "|--:|--:|--:|:-:|---|--:|--:|--:|--:|--:|--:|",
    ]
    base = {key(row): row for row in rows if row["name"] == "SimpleRNN"}
    for row in rows:
        if "skipped" in row:
            lines.append(
                f"| {row['units']} | {row['steps']} | {row['batch']} | "
                f"| {row['name']} | skipped: {row['skipped']} | | | | | |"
            )
            continue
        cells = [row["units"], row["steps"], row["batch"]]
        cells += ["yes" if row["jit_compile"] else "no", row["name"]]
        for kind in ("train", "infer"):
            seconds, other = row.get(kind), base.get(key(row), {}).get(kind)
            cells.append(f"{1e3 * seconds:.1f}" if seconds else "")
            cells.append(f"{seconds / other:.2f}" if seconds and other else "")
        cells.append(f"{row['compile']:.1f}" if "compile" in row else "")
        cells.append(f"{row['memory_mib']:.0f}" if "memory_mib" in row else "")
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    """Returns the shape of a row, within which rows are compared."""
    return tuple(row[name] for name in ("units", "steps", "batch", "jit_compile"))


def main() -> None:
    """Runs the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--form", choices=["short", "axes", "grid"], default="axes")
    parser.add_argument("--repeats", type=positive_int, default=5, help="of each step")
    parser.add_argument("--xla", choices=["no", "yes", "both"], default="both")
    parser.add_argument("--no-memory", action="store_true", help="only times")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--out", type=Path, default=Path("out/benchmarks"))
    options = parser.parse_args()

    jit = {"no": [False], "yes": [True], "both": [False, True]}[options.xla]
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    if backend == "jax":
        jit = [True]  # JAX always compiles with XLA.
    # In one process, PyTorch's threads would occupy the cores during other steps.
    alone = [name for name in options.only if name.startswith("torch")]
    together = [name for name in options.only if name not in alone]
    tasks = [
        {"kind": "time", "names": names, "repeats": options.repeats}
        | {"shape": _shape(shape, jit_compile)}
        for shape in shapes(options.form)
        for jit_compile in jit
        for names in (together, [] if jit_compile else alone)
        if names
    ]
    if not options.no_memory:
        long = (LONGEST, ["ScoRNN, recompute"])
        measured = [(CENTER, IN_MEMORY), (LONG[-1], IN_MEMORY), long]
        tasks += [
            {"kind": "memory", "names": [name], "shape": _shape(shape, jit[0])}
            for shape, names in measured[: 1 if options.form == "short" else None]
            for name in names
            if name in options.only
        ]
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    path = options.out / f"recurrence-{backend}"
    for task in tqdm(tasks, unit="measurement"):
        for name, values in run("measurement.py", task).items():
            row = {**task["shape"], "name": name}
            rows.setdefault((*key(row), name), row).update(values)
        found = list(rows.values())
        write_report(path, {"rows": found}, table(found))
    plot(
        [row for row in rows.values() if not row["jit_compile"]],
        path.with_suffix(".png"),
        dict.fromkeys(NAMES, "--") | {name: "-" for name in NAMES if "Sco" in name},
        PANELS,
    )
    print(*table(list(rows.values())), sep="\n")


def _shape(shape: Shape, jit_compile: bool) -> dict[str, Any]:
    units, steps, batch = shape
    return {"units": units, "steps": steps, "batch": batch, "jit_compile": jit_compile}


if __name__ == "__main__":
    main()
