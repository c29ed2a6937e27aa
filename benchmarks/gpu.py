"""Measures every layer on a GPU relative to JAX's and PyTorch's recurrent layers.

The benchmark runs on JAX, in float32, TensorFloat-32 and bfloat16. It measures training
and inference steps of all layers, with equal numbers of real state entries, relative to
LSTM and RNN layers with as many units and with as many parameters (as a scoRNN), by
cuDNN where JAX and PyTorch provide it. It also measures the share of the recurrent
matrix, compile time and peak memory, and profiles the steps. Before any measurement,
every layer is checked against its definition in float64 on the CPU.

Run it as `python benchmarks/gpu.py [--form grid] [--out out/gpu]`, with JAX for the GPU
and the extras `bench` and `plot`; TensorFlow is not needed. It writes a JSON file of
rows, tables, plots and traces; when restarted, it resumes. The default form, `short`,
has two shapes; `grid` has 80, from which `--units`, `--steps` and `--batch` select;
`tiny` tests the program and also runs on a CPU. `--precision`, `--only` and `--no-...`
restrict it further. It has not been run on a GPU yet.
"""

import argparse
import os
import re
from pathlib import Path
from typing import Any

from gpu_names import (
    CHECKED,
    FORMS,
    LAYER_NAMES,
    NAMES,
    PRECISIONS,
    TORCH,
    tasks,
)
from gpu_report import plots, report
from gpu_rows import Row, Rows, failures, why_not
from machine import machine
from options import positive_float, positive_int
from processes import run

from keras_ortho.files import replacing

WORKER = "gpu_worker.py"


def environment(task: dict[str, Any]) -> dict[str, str]:
    """Chooses the environment variables for the process of a task."""
    variables = {"KERAS_BACKEND": "jax"}
    if set(task.get("names", ())) & set(TORCH):
        return variables | {"JAX_PLATFORMS": "cpu"}  # PyTorch uses the GPU.
    if task["kind"] == "check":
        variables["JAX_ENABLE_X64"] = "1"
        chosen = os.environ.get("JAX_PLATFORMS", "")
        if chosen and "cpu" not in chosen:
            variables["JAX_PLATFORMS"] = f"{chosen},cpu"
    return variables


def measure(task: dict[str, Any], limit: float) -> dict[str, dict[str, Any]]:
    """Measures the candidates of a task, and repeats failed ones separately."""
    names = task["names"]
    results: dict[str, dict[str, Any]] = {}
    try:
        results = run(WORKER, task, environment(task), limit)
    except RuntimeError as error:
        if len(names) == 1:
            return {names[0]: {"failed": str(error).strip().splitlines()[-1][:300]}}
    if len(names) > 1:
        for name in names:
            # Memory may have run out for all together, or one may have crashed.
            if "failed" in results.get(name, {"failed": ""}):
                results |= measure({**task, "names": [name]}, limit)
    return results


def hold(rows: Rows, form: str, precisions: list[str], names: list[str]) -> list[str]:
    """Checks layers against their definition, and adds the errors to the rows."""
    wrong = []
    for name in names:
        shapes = {precision: CHECKED[form][precision] for precision in precisions}
        found = {}
        for precision, (units, steps, batch) in shapes.items():
            sizes = {"units": units, "steps": steps, "batch": batch}
            task = {"kind": "check", "precision": precision, **sizes, "names": [name]}
            if rows.missing(task):
                found[precision] = task
        if not found:
            continue
        wanted = {precision: shapes[precision] for precision in found}
        task = {"kind": "check", "names": [name], "shapes": wanted}
        results = run(WORKER, task, environment(task))[name]
        for precision, quantities in results.items():
            off = failures(quantities)
            if off:
                wrong += [f"{name}, {precision}, {line}" for line in off]
            else:
                rows.add(found[precision], {name: {"quantities": quantities}})
            verdict = "WRONG" if off else "right"
            print(f"check {precision} {name}: {verdict}", flush=True)
    return wrong


def describe(row: Row) -> str:
    """Describes a row in one line."""
    place = (
        f"{row['kind']} {row['precision']} n={row['units']} T={row['steps']} "
        f"B={row['batch']} {row['name']}: "
    )
    shown = {"train": 1e3, "infer": 1e3, "busy": 1e3, "compile": 1, "memory_mib": 1}
    units = {"compile": "s", "memory_mib": "MiB"}
    return place + (
        why_not(row)
        or ", ".join(
            f"{name} {scale * row[name]:.3g} {units.get(name, 'ms')}"
            for name, scale in shown.items()
            if name in row
        )
    )


def parse() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    add = parser.add_argument
    add("--form", choices=FORMS, default="short")
    add("--precision", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    add("--only", nargs="+", choices=NAMES, default=list(NAMES), metavar="NAME")
    add(
        "--units", nargs="+", type=positive_int, help="only of these shapes of the form"
    )
    add("--steps", nargs="+", type=positive_int)
    add("--batch", nargs="+", type=positive_int)
    add("--repeats", type=positive_int, default=10, help="of each step")
    add("--limit", type=positive_float, default=3_600, help="seconds for a process")
    add("--retry", action="store_true", help="also what has failed before")
    for name in ("check", "memory", "profile"):
        add(f"--no-{name}", action="store_true")
    add("--out", type=Path, default=Path("out/gpu"))
    return parser.parse_args()


def chosen(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Lists the tasks that the command line selects."""
    arguments = vars(options)
    found = []
    for task in tasks(options.form, options.precision, options.only):
        # A kernel task has no time steps and no batch.
        sizes = [name for name in ("units", "steps", "batch") if task[name]]
        wanted = all(task[name] in (arguments[name] or [task[name]]) for name in sizes)
        if wanted and not arguments.get(f"no_{task['kind']}"):
            found.append(task)
    return found


def main() -> None:
    """Runs the benchmark from the command line."""
    options = parse()
    about, task = machine(), dict[str, Any](kind="about")
    device = run(WORKER, task, environment(task))
    versions = about["versions"] | device["versions"]
    about |= {**device, "versions": versions, "backend": "jax"}
    slug = re.sub(r"\W+", "-", about["device"].lower()).strip("-")
    path = options.out / f"gpu-{slug}"
    rows = Rows(path.with_suffix(".json"), about, options.retry)
    print(f"{about['device']}: {path}.json", flush=True)

    layers = [name for name in options.only if name in LAYER_NAMES]
    if not options.no_check:
        wrong = hold(rows, options.form, options.precision, layers)
        if wrong:
            raise SystemExit("Nothing is measured:\n" + "\n".join(wrong))
    for task in chosen(options):
        missing = rows.missing(task)
        if not missing:
            continue
        task |= {"names": missing, "repeats": options.repeats}
        if task["kind"] == "profile":
            place = "-".join(str(task[name]) for name in ("units", "steps", "batch"))
            name = re.sub(r"\W+", "-", missing[0])
            folder = options.out / "traces" / f"{name}-{place}-{task['precision']}"
            task["folder"] = str(folder.resolve())
        for row in rows.add(task, measure(task, options.limit)):
            print(describe(row), flush=True)
        with replacing(path.with_suffix(".md")) as aside:
            aside.write_text(report(rows, about), "utf-8")
    try:
        for image in plots(rows, options.form, path):
            print(image)
    except ImportError as error:
        print(f"No plots. {error}")


if __name__ == "__main__":
    main()
