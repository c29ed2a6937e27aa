"""What the benchmarks share: layers, training steps, processes, turns and reports."""

import contextlib
import functools
import importlib.metadata
import multiprocessing
import os
import platform
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import keras
import numpy as np

from keras_ortho import cells, optimizers
from keras_ortho.architectures import ARCHITECTURES
from keras_ortho.baselines import matched_units
from keras_ortho.extras import require
from keras_ortho.parametrizations.skew import num_entries
from keras_ortho.processors import processor_count

ROOT = Path(__file__).resolve().parents[1]
OUT = Path("out/benchmarks", keras.backend.backend())
OUTPUTS = 10
Result = TypeVar("Result")
Key = TypeVar("Key", bound=Hashable)
Steps = tuple[Callable[[], Any], Callable[[], Any]]

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


def make_layer(name: str, n: int) -> Any:
    """Makes a layer of `LAYERS`, or another one of Keras with `n` units."""
    expression = LAYERS.get(name, f"keras.layers.{name}(n)")
    return eval(expression, {**vars(cells), "keras": keras, "n": n})


def matched(kind: str, n: int) -> int:
    """Finds the units of an LSTM or GRU with the parameters of a `ScoRNN(n)`."""
    return matched_units(kind.lower(), num_entries(n) + 2 * n, features=1)


def data(steps: int, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws sequences of numbers, and targets."""
    random = np.random.default_rng(0)
    x = random.random((batch, steps, 1), "float32")
    return x, random.random((batch, OUTPUTS), "float32")


def keras_steps(layer: Any, steps: int, batch: int, jit_compile: Any = "auto") -> Steps:
    """Makes the training and inference step of a network with one recurrent layer."""
    x, y = data(steps, batch)
    model = keras.Sequential(
        [keras.Input((steps, 1)), layer, keras.layers.Dense(OUTPUTS)]
    )
    # If the optimizer keeps the matrix unitary, that work belongs to the step.
    kept = "unitary" in map(optimizers.group_of, model.trainable_variables)
    optimizer = optimizers.paper_optimizer() if kept else "adam"
    model.compile(optimizer, "mse", jit_compile=jit_compile)
    return (
        functools.partial(model.train_on_batch, x, y),
        functools.partial(model.predict_on_batch, x),
    )


def torch_steps(
    kind: str, units: int, steps: int, batch: int, precision: str = "float32"
) -> Steps:
    """Makes the steps of PyTorch's `"LSTM"` or orthogonal `"RNN"`; on a GPU cuDNN's."""
    torch = require("torch", extra="torch")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    rnn = getattr(torch.nn, kind)(1, units, batch_first=True)
    if kind == "RNN":
        torch.nn.utils.parametrizations.orthogonal(rnn, "weight_hh_l0")
    head = torch.nn.Linear(units, OUTPUTS)
    rnn, head = rnn.to(device), head.to(device)
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


def in_turns(calls: Mapping[Key, Callable[[], Any]], repeats: int) -> dict[Key, float]:
    """Returns the median time of calls, in turns: other load slows all alike."""
    seconds: dict[Key, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(own) for name, own in seconds.items()}


def measure(
    makers: Mapping[Key, Callable[[], Steps]], repeats: int
) -> dict[Key, dict[str, float]]:
    """Measures the first training step, then training and inference in turns."""
    found: dict[Key, dict[str, float]] = {}
    calls: dict[tuple[Key, str], Callable[[], Any]] = {}
    for name, make in makers.items():
        train, infer = make()
        start = time.perf_counter()
        train()
        found[name] = {"first": time.perf_counter() - start}
        for call in (infer, train, infer):  # Some compilation is at the second call.
            call()
        calls |= {(name, "train"): train, (name, "infer"): infer}
    for (name, kind), seconds in in_turns(calls, repeats).items():
        found[name][kind] = seconds
    return found


def apart(
    function: Callable[..., Result],
    *processes: Sequence[Any],
    environment: Mapping[str, str] | None = None,
    cores: Sequence[set[int]] | None = None,
) -> list[Result]:
    """Calls a function in fresh processes at once, with the arguments of each."""
    spawn = multiprocessing.get_context("spawn")
    futures: list[Future[Result]] = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, environment or {}))
        if cores:
            stack.callback(os.sched_setaffinity, 0, os.sched_getaffinity(0))
        for number, arguments in enumerate(processes):
            if cores:  # A process has those of the one that starts it.
                os.sched_setaffinity(0, cores[number])
            pool = ProcessPoolExecutor(1, mp_context=spawn)
            futures.append(pool.submit(function, *arguments))
            pool.shutdown(wait=False)  # Those that communicate must end together.
        return [future.result() for future in futures]


def machine() -> str:
    """Describes the machine, the commit and the software in a line."""
    found = re.search("model name\t: (.*)", Path("/proc/cpuinfo").read_text("utf-8"))
    processor = found[1] if found else platform.machine()
    git = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(git, cwd=ROOT, capture_output=True, text=True).stdout
    versions = []
    for package in ("keras", "tensorflow", "jax", "torch", "numpy"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions.append(f"{package} {importlib.metadata.version(package)}")
    return (
        f"{keras.backend.backend()} on {processor_count()} cores of {processor}; "
        f"commit {commit.strip()}, Python {platform.python_version()}, "
        f"{', '.join(versions)}"
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
