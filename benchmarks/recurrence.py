"""Measures `ScoRNN` and `RNN(ScoRNNCell)` beside the layers of Keras and PyTorch.

The peers are `SimpleRNN`; `LSTM` and `GRU`, with as many units and with as many
parameters; and PyTorch's orthogonal `nn.RNN` (extra `torch`). All candidates of a shape
train and infer in turns in one process (PyTorch in another); the peak memory of
training is measured in a process for each. Run it as `python benchmarks/recurrence.py
[--form axes]`; it writes a table. `KERAS_BACKEND` chooses the backend. On two cores,
the form `short` takes a few minutes, `axes` most of an hour.
"""

import argparse
import functools
import gc
import importlib.util
import itertools
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import measuring
from measuring import matched

from keras_ortho import ScoRNN, ScoRNNCell

Shape = tuple[int, int, int]
# Units, time steps and batch size.
CENTER = (170, 784, 128)
SHORT = [CENTER, (170, 750, 50)]
AXES = [
    *SHORT,
    *((units, 784, 128) for units in (128, 360, 512)),
    *((170, 784, batch) for batch in (20, 50)),
    # Batch size 20, as the LSTM's steps for a batch of 128 would fill the memory.
    *((170, steps, 20) for steps in (200, 2_000, 10_000)),
]
# `recompute` only, as the states alone take 0.8 GB.
LONGEST = (128, 100_000, 16)
FORMS = {"tiny": [(5, 7, 3)], "short": SHORT, "axes": AXES}
TORCH, RECOMPUTE = "torch RNN, orthogonal", "ScoRNN, recompute"
IN_MEMORY = ("SimpleRNN", "ScoRNN", RECOMPUTE, "LSTM", "GRU")
LAYERS: dict[str, Callable[[int], keras.layers.Layer]] = {
    "SimpleRNN": keras.layers.SimpleRNN,
    "ScoRNN": ScoRNN,
    "RNN(ScoRNNCell)": lambda n: keras.layers.RNN(ScoRNNCell(n)),
    RECOMPUTE: lambda n: ScoRNN(n, recompute=True),
    "LSTM": keras.layers.LSTM,
    "GRU": keras.layers.GRU,
    "LSTM, as many parameters": lambda n: keras.layers.LSTM(matched("LSTM", n)),
    "GRU, as many parameters": lambda n: keras.layers.GRU(matched("GRU", n)),
}


def steps_of(name: str, shape: Shape, xla: bool) -> measuring.Steps:
    """Makes the training and inference step of a candidate."""
    if name == TORCH:
        return measuring.torch_steps("RNN", *shape)
    units, steps, batch = shape
    return measuring.keras_steps(LAYERS[name](units), steps, batch, xla or "auto")


def times(
    names: list[str], shape: Shape, xla: bool, repeats: int
) -> dict[str, dict[str, float]]:
    """Measures the steps of candidates in turns."""
    makers = {name: functools.partial(steps_of, name, shape, xla) for name in names}
    return measuring.measure(makers, repeats)


def memory(name: str, shape: Shape, xla: bool) -> dict[str, Any]:
    """Measures the peak memory of training, less that of the idle process, in MiB."""
    # Keeps the one-time setup of the backend out of the measurement.
    steps_of("SimpleRNN", (4, 4, 2), xla)[0]()
    train, _ = steps_of(name, shape, xla)
    gc.collect()
    with open("/proc/self/statm", encoding="utf-8") as file:
        idle = int(file.read().split()[1]) * resource.getpagesize()
    for _ in range(3):
        train()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {name: {"memory": (peak - idle) / 2**20}}


def row(shape: Shape, name: str, own: dict[str, float], base: dict[str, float]) -> Any:
    """Formats the measurements of a candidate, over those of `SimpleRNN`."""
    cells = [name, *map(str, shape)]
    for kind in ("train", "infer"):
        cells.append(f"{1e3 * own[kind]:.3g}" if kind in own else "")
        known = kind in own and kind in base
        cells.append(f"{own[kind] / base[kind]:.2f}" if known else "")
    cells.append(f"{own['first']:.1f}" if "first" in own else "")
    return [*cells, f"{own['memory']:.0f}" if "memory" in own else ""]


def main() -> None:
    """Runs the benchmark from the command line."""
    names = [*LAYERS, *([TORCH] if importlib.util.find_spec("torch") else [])]
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    add = parser.add_argument
    add("--form", choices=FORMS, default="short", help="(short)")
    add("--repeats", type=int, default=5, help="of each step (5)")
    add("--xla", action="store_true", help="on TensorFlow; JAX always compiles with it")
    add("--no-memory", action="store_true", help="only times")
    add("--only", nargs="+", choices=names, default=names)
    add("--out", type=Path, default=measuring.OUT / "recurrence.md")
    options = parser.parse_args()
    # In one process, PyTorch's threads would occupy the cores during other steps.
    groups = [[name for name in options.only if name != TORCH]]
    groups += [[TORCH]] if TORCH in options.only else []
    shapes = FORMS[options.form]
    tasks: list[tuple[Any, ...]] = [
        (times, group, shape, options.xla, options.repeats)
        for shape, group in itertools.product(shapes, groups)
    ]
    if not options.no_memory:
        large = [shapes[0], shapes[-1]] if options.form == "axes" else shapes[:1]
        measured = list(itertools.product(IN_MEMORY, large))
        measured += [(RECOMPUTE, LONGEST)] if options.form == "axes" else []
        tasks += [(memory, *p, options.xla) for p in measured if p[0] in options.only]
    found: dict[Shape, dict[str, dict[str, float]]] = {}
    titles = ["layer", "n", "T", "B", "training step, ms", "over SimpleRNN"]
    titles += ["inference, ms", "over SimpleRNN", "first step, s", "peak memory, MiB"]
    for function, which, shape, *others in tasks:
        (results,) = measuring.apart(function, (which, shape, *others))
        for name, values in results.items():
            found.setdefault(shape, {}).setdefault(name, {}).update(values)
    rows = [
        row(shape, name, own, results.get("SimpleRNN", {}))
        for shape, results in found.items()
        for name, own in results.items()
    ]
    measuring.report(options.out, titles, rows, "with XLA; " if options.xla else "")


if __name__ == "__main__":
    main()
