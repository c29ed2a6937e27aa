"""Trains every layer on two replicas and compares the result with one device.

One device trains on ten whole batches; two replicas train on the same batches, each on
one half. The replicas are two TensorFlow devices (`MirroredStrategy`), two JAX devices
(`DataParallel`), or two JAX processes that communicate over the loopback interface
(`keras.distribution.initialize`). All run on the CPU. Further networks test what counts
training passes or depends on the batch: ENRNN's flag, set during the ten updates, a
moved base, and `BNPDense`; and dropout, whose masks may differ.

Run it as `python benchmarks/distribution.py [--dtype float64] [--out FOLDER]`. It
writes a table of the largest differences from one device, in the ten losses and in the
final weights.
"""

import argparse
import os
import socket
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from layers import LAYERS
from machine import machine, versions
from processes import run_together
from ten_updates import REPLICAS, UPDATES
from tqdm import tqdm

from experiments.tables import table
from keras_ortho.files import replacing

NETWORKS = LAYERS | {
    # The penalty pushes the spectral radius past 1 within the ten updates.
    "ENRNN, its flag": "ENRNN(n - 2, 2, short_term_initializer=np.diag([0.998, 0.5]), "
    "recurrent_regularizer=lambda x: -keras.ops.sum(keras.ops.square(x)))",
    "ScoRNN, rebased": "ScoRNN(n, rebase_every=3)",
    "ScoRNN, dropout": "ScoRNN(n, dropout=0.2, recurrent_dropout=0.2)",
    "BNPDense": '[keras.layers.Flatten(), BNPDense(n, activation="tanh")]',
}


class Way(NamedTuple):
    """A way of training on two replicas.

    Attributes:
        title: Name in the table.
        backend: Keras's backend.
        name: Name for `ten_updates.py` and the command line.
    """

    title: str
    backend: str
    name: str


WAYS = (
    Way("MirroredStrategy, 2 replicas", "tensorflow", "mirrored"),
    Way("DataParallel, 2 devices", "jax", "devices"),
    Way("2 processes", "jax", "processes"),
)


def main() -> None:
    """Runs the command."""
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    networks = {name: NETWORKS[name] for name in options.only}
    found: dict[str, dict[str, dict[str, float]]] = {}
    alone: dict[str, dict[str, np.ndarray]] = {}
    for way in tqdm([way for way in WAYS if way.name in options.ways], unit="way"):
        if way.backend not in alone:
            alone[way.backend] = trained("one", way.backend, networks, options.dtype)
        replicas = trained(way.name, way.backend, networks, options.dtype)
        found[way.title] = {
            name: differences(name, alone[way.backend], replicas) for name in networks
        }
        # Writes the results so far, in case the next way fails.
        text = describe(networks, found, options.dtype)
        with replacing(options.out / f"{options.dtype}.md") as aside:
            aside.write_text(text, "utf-8")
    print(text)


def trained(
    way: str, backend: str, networks: dict[str, str], dtype: str
) -> dict[str, np.ndarray]:
    """Trains networks in one way."""
    flags = os.environ.get("XLA_FLAGS", "")
    if way == "devices":
        flags = f"{flags} --xla_force_host_platform_device_count={REPLICAS}"
    environment = os.environ | {
        "CUDA_VISIBLE_DEVICES": "",
        "JAX_ENABLE_X64": "1",
        "JAX_PLATFORMS": "cpu",
        "KERAS_BACKEND": backend,
        "XLA_FLAGS": flags.strip(),
    }
    task = {"way": way, "networks": networks, "dtype": dtype}
    count = REPLICAS if way == "processes" else 1
    if count > 1:
        task["address"] = f"127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results.npz"
        task["out"] = str(out)
        tasks = [{**task, "process": number} for number in range(count)]
        run_together("ten_updates.py", tasks, environment)
        with np.load(out) as file:
            return dict(file)


def free_port() -> int:
    """Returns the number of a free TCP port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def differences(
    name: str, one: dict[str, np.ndarray], other: dict[str, np.ndarray]
) -> dict[str, float]:
    """Compares a network that was trained in two ways."""
    keys = [key for key in one if key.startswith(f"{name}/")]
    largest = dict.fromkeys(("loss", "before", "after", "step"), 0.0)
    for key in keys:
        _, kind, *_ = key.split("/")
        largest[kind] = max(largest[kind], apart(one[key], other[key]))
        if kind == "after":
            step = apart(one[key], one[key.replace("/after/", "/before/")])
            largest["step"] = max(largest["step"], step)
    return largest


def apart(one: np.ndarray, other: np.ndarray) -> float:
    """Returns the largest absolute difference, with booleans as 0 and 1."""
    difference = np.abs(np.asarray(one, "float64") - np.asarray(other, "float64"))
    return float(difference.max(initial=0.0))


def describe(
    networks: dict[str, str], found: dict[str, dict[str, dict[str, float]]], dtype: str
) -> str:
    """Formats the results as a Markdown table, with the versions below it."""
    cells = []
    for name, expression in networks.items():
        rows = [rows[name] for rows in found.values()]
        errors = [f"{row['loss']:.0e}, {row['after']:.0e}" for row in rows]
        title = name if name not in LAYERS else f"`{expression}`"
        moved = max(row["step"] for row in rows)
        cells.append([title, *errors, f"{moved:.0e}"])
    about = machine()
    lines = table(["network", *found, "weights moved by"], cells, right=True)
    lines += [
        "",
        f"(Losses, weights after {UPDATES} updates; {dtype}, seed 0; "
        f"{about['commit']}, {versions(about)}.)",
    ]
    return "\n".join(lines) + "\n"


def parse() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--only", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    names = [way.name for way in WAYS]
    add("--ways", nargs="+", choices=names, default=names, help="(all)")
    add("--dtype", choices=["float32", "float64"], default="float32", help="(float32)")
    add("--out", type=Path, default=Path("out/distribution"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
