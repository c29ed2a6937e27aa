"""Measures `ScoRNN` and `RNN(ScoRNNCell)` beside the layers of Keras and PyTorch.

All candidates of a shape train and infer in turns in one process, PyTorch's orthogonal
`nn.RNN` (extra `torch`) in another; the peak memory of training is measured in a
process for each. Run it as `python benchmarks/recurrence.py [--xla]`; it writes a table
with ratios to the first candidate. `KERAS_BACKEND` chooses the backend, and `--xla` is
for TensorFlow. On two cores a shape takes a few minutes. `--only` also takes PyTorch's
layers, as `"torch LSTM, orthogonal"`, and expressions such as `"ORNN(n)"`.
"""

import gc
import importlib.util
import itertools
import resource
from typing import Any

import measuring
from measuring import MATCHED, steps_of

NAMES = ["SimpleRNN", "ScoRNN", "RNN(ScoRNNCell)", "ScoRNN, recompute", "LSTM", "GRU"]
NAMES += ["LSTM" + MATCHED, "GRU" + MATCHED]
NAMES += ["torch RNN, orthogonal"] if importlib.util.find_spec("torch") else []


def memory(name: str, *arguments: Any) -> float:
    """Measures the peak memory of training, less that of the idle process, in MiB."""
    steps_of("SimpleRNN", 4, 4, 2)[0]()  # The one-time setup of the backend.
    train, _ = steps_of(name, *arguments)
    gc.collect()
    with open("/proc/self/statm", encoding="utf-8") as file:
        idle = int(file.read().split()[1]) * resource.getpagesize()
    for _ in range(3):
        train()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - idle) / 2**20


def main() -> None:
    """Runs the benchmark from the command line."""
    sizes: dict[str, Any] = {"units": [170], "steps": [784], "batch": [128]}
    sizes |= {"xla": False, "repeats": 5}
    options = measuring.parse(__doc__, "recurrence.md", NAMES, **sizes)
    rows = []
    for shape in itertools.product(options.units, options.steps, options.batch):
        given = *shape, options.xla or "auto"
        arguments = options.only, options.repeats, *given
        found = measuring.grouped(measuring.measure, *arguments)
        first = found[options.only[0]]
        for name, own in found.items():
            row = [name, *map(str, shape)]
            for kind in ("train", "infer"):
                row += [f"{1e3 * own[kind]:.3g}", f"{own[kind] / first[kind]:.2f}"]
            (peak,) = measuring.apart(memory, (name, *given))
            rows.append([*row, f"{own['first']:.1f}", f"{peak:.0f}"])
    titles = ["layer", "n", "T", "B", "training step, ms", "ratio"]
    titles += ["inference, ms", "ratio", "first step, s", "peak memory, MiB"]
    measuring.report(options.out, titles, rows, "with XLA; " if options.xla else "")


if __name__ == "__main__":
    main()
