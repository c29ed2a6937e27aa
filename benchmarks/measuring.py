"""What the benchmarks share: layers, training steps, processes, turns and reports."""

import argparse
import contextlib
import functools
import importlib.metadata
import multiprocessing
import platform
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import keras
import numpy as np

import keras_ortho
from keras_ortho import cells, optimizers, parametrizations
from keras_ortho.architectures import ARCHITECTURES
from keras_ortho.baselines import matched_units
from keras_ortho.executors import processor_count
from keras_ortho.extras import require
from keras_ortho.parametrizations.skew import num_entries

OUT = Path("out/benchmarks", keras.backend.backend())
OUTPUTS = 10
Steps = tuple[Callable[[], Any], Callable[[], Any]]
Found = dict[str, dict[str, float]]

# Expression for each layer with a state of `n` real entries, `n` a power of two.
LAYERS = {
    name: f"{name}(n // 2)"
    if getattr(cells, name).cell_class.complex_state
    else f"{name}(n)"
    for name in ARCHITECTURES
} | {
    "ScuRNN-smoothed": 'ScuRNN(n // 2, activation="smoothed_modrelu")',
    "ENRNN": "ENRNN(n // 2, n // 2)",
    "SVDRNN": "SVDRNN(n, reflections=16)",
    "ORNN": "ORNN(n, reflections=16)",
    "LSTM": "keras.layers.LSTM(n)",
}
# Other candidates; those of PyTorch are "torch LSTM", "torch LSTM, orthogonal" ...
PEERS = {
    "SimpleRNN": "keras.layers.SimpleRNN(n)",
    "RNN(ScoRNNCell)": "keras.layers.RNN(ScoRNNCell(n))",
    "ScoRNN, recompute": "ScoRNN(n, recompute=True)",
    "GRU": "keras.layers.GRU(n)",
    "LSTM, loop": "keras.layers.LSTM(n, use_cudnn=False)",
    "LSTM, cuDNN": "keras.layers.LSTM(n, use_cudnn=True)",
}
MATCHED = ", as many parameters"  # as a `ScoRNN(n)`, at the end of a name


def parse(about: Any, out: str, only: Collection[str], **defaults: Any) -> Any:
    """Reads `--only`, names or expressions, `--out`, and what else has a default."""
    parser = argparse.ArgumentParser(description=(about or "").split("\n\n")[0])
    parser.add_argument("--only", nargs="+", default=list(only), help="(all)")
    for name, default in {**defaults, "out": OUT / out}.items():
        given: dict[str, Any] = {"type": type(default), "help": f"({default})"}
        if isinstance(default, list):
            given |= {"nargs": "+", "type": type(default[0])}
        if isinstance(default, bool):
            given = {"action": "store_true"}
        parser.add_argument(f"--{name}", default=default, **given)
    options = parser.parse_args()
    for name in options.only:
        if name not in only and not re.match(r"torch |.*\(n", name):
            parser.error(f"--only must be of {list(only)}. Received: {name}")
    return options


def make_layer(name: str, n: int = 0, **others: Any) -> Any:
    """Makes a layer of `LAYERS`, or from another expression, with other names."""
    names = {**vars(parametrizations), **vars(keras_ortho), **others, "keras": keras}
    return eval(LAYERS.get(name, name), {**names, "n": n})


def data(steps: int, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws sequences of numbers, and targets."""
    random = np.random.default_rng(0)
    x = random.random((batch, steps, 1), "float32")
    return x, random.random((batch, OUTPUTS), "float32")


def keras_steps(layer: Any, steps: int, batch: int, jit: Any) -> Steps:
    """Makes the training and inference step of a network with one recurrent layer."""
    x, y = data(steps, batch)
    inputs, head = keras.Input((steps, 1)), keras.layers.Dense(OUTPUTS)
    model = keras.Sequential([inputs, layer, head])
    # If the optimizer keeps the matrix unitary, that work belongs to the step.
    kept = "unitary" in map(optimizers.group_of, model.trainable_variables)
    optimizer = optimizers.paper_optimizer() if kept else "adam"
    model.compile(optimizer, "mse", jit_compile=jit)
    return (
        functools.partial(model.train_on_batch, x, y),
        functools.partial(model.predict_on_batch, x),
    )


def torch_steps(name: str, n: int, steps: int, batch: int, precision: str) -> Steps:
    """Makes the steps of a layer of PyTorch; on a GPU cuDNN's."""
    torch = require("torch", extra="torch")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    kind, *orthogonal = name.removeprefix("torch ").split(", ")
    rnn = getattr(torch.nn, kind)(1, n, batch_first=True)
    if orthogonal:
        torch.nn.utils.parametrizations.orthogonal(rnn, "weight_hh_l0")
    rnn, head = rnn.to(device), torch.nn.Linear(n, OUTPUTS).to(device)
    optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()])
    x, y = (torch.from_numpy(each).to(device) for each in data(steps, batch))

    def forward() -> Any:
        with torch.autocast(device, torch.bfloat16, enabled=precision == "bfloat16"):
            outputs, _ = rnn(x)
            return head(outputs[:, -1]).float()

    def train() -> float:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(forward(), y)
        loss.backward()
        optimizer.step()
        return loss.item()  # Waits until the step is complete.

    def infer() -> np.ndarray:
        with torch.no_grad():
            return forward().cpu().numpy()

    return train, infer


def steps_of(
    name: str, n: int, steps: int, batch: int, jit: Any = "auto", precision: str = ""
) -> Steps:
    """Makes the steps of a candidate; Keras's precision is a global setting."""
    kind, *others = name.split(MATCHED)
    if others:
        parameters = num_entries(n) + 2 * n
        n = matched_units("gru" if kind == "GRU" else "lstm", parameters, features=1)
    if kind.startswith("torch"):
        return torch_steps(kind, n, steps, batch, precision)
    return keras_steps(make_layer(PEERS.get(kind, kind), n), steps, batch, jit)


def in_turns(calls: Mapping[Any, Callable[[], Any]], repeats: int) -> dict[Any, float]:
    """Returns the median time of calls, in turns: other load slows all alike."""
    seconds: dict[Any, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(own) for name, own in seconds.items()}


def measure(names: Iterable[str], repeats: int, *arguments: Any) -> Found:
    """Measures the first training step, then training and inference in turns."""
    steps_of("SimpleRNN", 4, 4, 2)[0]()  # The one-time setup of the backend.
    found: Found = {}
    calls: dict[Any, Callable[[], Any]] = {}
    for name in names:
        train, infer = steps_of(name, *arguments)
        found[name] = {"first": in_turns({"": train}, 1)[""]}
        for call in (infer, train, infer):  # Some compilation is at the second call.
            call()
        calls |= {(name, "train"): train, (name, "infer"): infer}
    for (name, kind), seconds in in_turns(calls, repeats).items():
        found[name][kind] = seconds
    return found


def apart(function: Callable[..., Any], *processes: Sequence[Any]) -> list[Any]:
    """Calls a function in fresh processes at once, with the arguments of each."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(processes), mp_context=spawn) as pool:
        return list(pool.map(function, *zip(*processes, strict=True)))


def grouped(function: Callable[..., Any], names: list[str], *arguments: Any) -> Any:
    """Measures PyTorch's candidates apart: its threads and memory are in the way."""
    by_torch = [name for name in names if name.startswith("torch")]
    groups = [name for name in names if name not in by_torch], by_torch
    parts = [apart(function, (group, *arguments))[0] for group in groups if group]
    return {name: found for part in parts for name, found in part.items()}


def machine() -> str:
    """Describes the machine, the commit and the software in a line."""
    found = re.search("model name\t: (.*)", Path("/proc/cpuinfo").read_text("utf-8"))
    processor = found[1] if found else platform.machine()
    folder = Path(__file__).parent
    commit = subprocess.getoutput(f"git -C '{folder}' describe --always --dirty")
    versions = [f"Python {platform.python_version()}"]
    for package in ("keras", "tensorflow", "jax", "torch", "numpy"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions.append(f"{package} {importlib.metadata.version(package)}")
    return (
        f"{keras.backend.backend()} on {processor_count()} cores of {processor}; "
        f"commit {commit}, {', '.join(versions)}"
    )


def report(
    path: Path, titles: Sequence[str], rows: Sequence[Sequence[str]], about: str = ""
) -> None:
    """Writes and prints a table in Markdown, and what it was measured on."""
    lines = [titles, ["---", *["--:"] * (len(titles) - 1)], *rows]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{table}\n({about}{machine()}.)\n", "utf-8")
    print(path.read_text("utf-8"))
