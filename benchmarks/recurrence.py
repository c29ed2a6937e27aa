"""Measures `ScoRNN` and `RNN(ScoRNNCell)` beside the layers of Keras and PyTorch.

All candidates of a shape train and infer in turns in one process, PyTorch's orthogonal
`nn.RNN` (extra `torch`) in another; the peak memory of training is measured in a
process for each. Run it as `python benchmarks/recurrence.py [--form axes] [--xla]`; it
writes a table. `KERAS_BACKEND` chooses the backend, and `--xla` is for TensorFlow. On
two cores, the form `short` takes a few minutes, `axes` most of an hour.
"""

import gc
import importlib.util
import resource
from collections.abc import Callable
from typing import Any

import keras
import measuring
from measuring import Found, matched

from keras_ortho import ScoRNN, ScoRNNCell

Shape = tuple[int, int, int]
# Units, time steps and batch size.
SHORT = [(170, 784, 128), (170, 750, 50)]
AXES = [
    *SHORT,
    *((units, 784, 128) for units in (128, 360, 512)),
    *((170, 784, batch) for batch in (20, 50)),
    # Batch size 20, as the LSTM's steps for a batch of 128 would fill the memory.
    *((170, steps, 20) for steps in (200, 2_000, 10_000)),
]
# Of which the memory is measured.
LARGE = [(5, 7, 3), (170, 784, 128), (170, 10_000, 20)]
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


def times(names: list[str], shape: Shape, xla: bool, repeats: int) -> Found:
    """Measures the steps of candidates in turns."""
    return measuring.measure(names, lambda n: steps_of(n, shape, xla), repeats)


def memory(name: str, shape: Shape, xla: bool) -> Found:
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


def row(name: str, shape: Shape, own: dict[str, float], base: Any) -> list[str]:
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
    options = measuring.parse(
        __doc__, "recurrence.md", names, form="short", xla=False, repeats=5
    )
    xla, tasks = options.xla, list[Any]()
    # In one process, PyTorch's threads would occupy the cores during other steps.
    by_torch = [name for name in options.only if name == TORCH]
    groups = [[name for name in options.only if name != TORCH], by_torch]
    for shape in FORMS[options.form]:
        tasks += [
            (times, group, shape, xla, options.repeats) for group in groups if group
        ]
        measured = IN_MEMORY if shape in LARGE else ()
        tasks += [(memory, n, shape, xla) for n in measured if n in options.only]
    if options.form == "axes":
        tasks.append((memory, RECOMPUTE, LONGEST, xla))
    found: dict[Shape, Found] = {}
    for function, *arguments in tasks:
        (results,) = measuring.apart(function, arguments)
        for name, values in results.items():
            found.setdefault(arguments[1], {}).setdefault(name, {}).update(values)
    rows = [
        row(name, shape, own, results.get("SimpleRNN", {}))
        for shape, results in found.items()
        for name, own in results.items()
    ]
    titles = ["layer", "n", "T", "B", "training step, ms", "over SimpleRNN"]
    titles += ["inference, ms", "over SimpleRNN", "first step, s", "peak memory, MiB"]
    measuring.report(options.out, titles, rows, "with XLA; " if xla else "")


if __name__ == "__main__":
    main()
