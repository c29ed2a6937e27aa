"""Trains every layer on two replicas: as on one device, and how much faster.

One device takes ten updates, and two replicas on one half of the same batches each, on
the CPU: two devices of TensorFlow, two of JAX, or two JAX processes that communicate
over the loopback interface. The table has the largest differences from one device, in
the ten losses and in the weights. With `--throughput` the replicas train a `ScoRNN`
with one core each, which nothing else should use, and the table has the sequences per
second. Run it as `python benchmarks/distribution.py [--dtype float64] [--throughput]`.
"""

import argparse
import contextlib
import os
import socket
import statistics
import time
from pathlib import Path
from typing import Any

import keras
import numpy as np
from measuring import LAYERS, OUT, apart, report

import keras_ortho

REPLICAS, UPDATES, RUNS, STATE = 2, 10, 5, 16
Arrays = dict[str, np.ndarray]
NETWORKS = LAYERS | {
    # The penalty pushes the spectral radius past 1 within the ten updates.
    "ENRNN, its flag": "ENRNN(n - 2, 2, short_term_initializer=np.diag([0.998, 0.5]), "
    "recurrent_regularizer=lambda x: -keras.ops.sum(keras.ops.square(x)))",
    "ScoRNN, rebased": "ScoRNN(n, rebase_every=3)",
    "ScoRNN, dropout": "ScoRNN(n, dropout=0.2, recurrent_dropout=0.2)",
    "BNPDense": "keras.Sequential([keras.layers.Flatten(), BNPDense(n)])",
}
# Titles, and Keras's backend, by the names of the command line.
WAYS = {
    "mirrored": ("MirroredStrategy, 2 replicas", "tensorflow"),
    "devices": ("DataParallel, 2 devices", "jax"),
    "processes": ("2 processes", "jax"),
}


def scope(way: str, process: int, address: str) -> Any:
    """Sets up the devices or processes, and returns their scope."""
    if way == "one":
        return contextlib.nullcontext()
    if way == "mirrored":
        import tensorflow as tf

        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0],
            [tf.config.LogicalDeviceConfiguration()] * REPLICAS,
        )
        devices = [f"CPU:{number}" for number in range(REPLICAS)]
        return tf.distribute.MirroredStrategy(devices).scope()
    if way == "processes":
        keras.distribution.initialize(address, REPLICAS, process)
    # `data` gives each process its share.
    distribution = keras.distribution.DataParallel(auto_shard_dataset=False)
    assert distribution.num_model_replicas == REPLICAS
    return distribution.scope()


def data(way: str, process: int, batch: int, steps: int, dtype: str) -> Any:
    """Draws a batch for each update, and returns this process's share."""
    random = np.random.default_rng(0)
    x = random.normal(size=(UPDATES, REPLICAS, batch // REPLICAS, steps, 3))
    x[:, 1:] += 1  # The two halves of a batch have different means.
    y = random.normal(size=(*x.shape[:3], 2))
    if way == "processes":
        x, y = (each[:, process : process + 1] for each in (x, y))
    batches = x.shape[0] * x.shape[1] * x.shape[2]
    return (each.reshape(batches, *each.shape[3:]).astype(dtype) for each in (x, y))


def network(expression: str, shape: tuple[int, ...], n: int) -> Any:
    """Makes a network that the papers' optimizers train."""
    names = {**vars(keras_ortho.cells), "BNPDense": keras_ortho.BNPDense}
    layer = eval(expression, {**names, "keras": keras, "np": np, "n": n})
    model = keras.Sequential([keras.Input(shape), layer, keras.layers.Dense(2)])
    model.compile(keras_ortho.optimizers.paper_optimizer(), "mse")
    return model


def trained(
    way: str, process: int, address: str, names: list[str], dtype: str
) -> dict[str, dict[str, list[Any]]]:
    """Trains networks for ten updates; returns their losses and weights."""
    found = {}
    with scope(way, process, address):
        keras.config.set_floatx(dtype)
        x, y = data(way, process, 8, 5, dtype)
        for name in names:
            keras.utils.set_random_seed(0)
            model = network(NETWORKS[name], x.shape[1:], STATE)
            before = model.get_weights()
            history = model.fit(
                *(x, y),
                batch_size=len(x) // UPDATES,
                epochs=UPDATES,
                steps_per_epoch=1,
                shuffle=False,
                verbose=0,
            )
            losses = history.history["loss"]
            after = model.get_weights()
            found[name] = {"loss": losses, "before": before, "after": after}
    return found


def throughput(
    way: str, process: int, address: str, units: int, steps: int, batch: int
) -> float:
    """Returns the sequences per second of training."""
    with scope(way, process, address):
        x, y = data(way, process, batch, steps, "float32")
        model = network("ScoRNN(n)", x.shape[1:], units)
        seconds = []
        for _ in range(RUNS + 1):  # The first one compiles.
            start = time.perf_counter()
            model.fit(x, y, batch_size=len(x) // UPDATES, shuffle=False, verbose=0)
            seconds.append(time.perf_counter() - start)
    return batch * UPDATES / statistics.median(seconds[1:])


def run(way: str, backend: str, function: Any, *arguments: Any) -> Any:
    """Calls a function in the processes of a way; returns the first one's result."""
    pinned = function is throughput
    flags = f"--xla_force_host_platform_device_count={REPLICAS}"
    environment = {
        "CUDA_VISIBLE_DEVICES": "",
        "JAX_ENABLE_X64": "0" if pinned else "1",
        "JAX_PLATFORMS": "cpu",
        "KERAS_BACKEND": backend,
        "OMP_NUM_THREADS": "1",
        "XLA_FLAGS": flags if way == "devices" else "",
    }
    with socket.socket() as listener:  # A free port.
        listener.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    count = REPLICAS if way == "processes" else 1
    tasks = [(way, process, address, *arguments) for process in range(count)]
    own = sorted(os.sched_getaffinity(0))[:REPLICAS]
    shares = {"one": [{own[0]}], "processes": [{core} for core in own]}
    cores = shares.get(way, [set(own)]) if pinned else None
    return apart(function, *tasks, environment=environment, cores=cores)[0]


def distance(one: list[Any], other: list[Any]) -> float:
    """Returns the largest absolute difference of arrays."""
    pairs = zip(one, other, strict=True)
    return max(np.abs(np.subtract(a, b, dtype="float64")).max() for a, b in pairs)


def main() -> None:
    """Runs the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    add = parser.add_argument
    add("--only", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    add("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    add("--dtype", choices=["float32", "float64"], default="float32")
    add("--throughput", action="store_true", help="instead, on two cores")
    add("--units", type=int, default=256, help="of the throughput (256)")
    add("--steps", type=int, default=784, help="in a sequence (784)")
    add("--batch", type=int, default=256, help="sequences, of all replicas (256)")
    add("--out", type=Path, default=OUT / "distribution.md")
    options = parser.parse_args()
    if options.throughput and len(os.sched_getaffinity(0)) < REPLICAS:
        parser.error("--throughput needs two cores")
    arguments: tuple[Any, ...] = (trained, options.only, options.dtype)
    if options.throughput:
        arguments = (throughput, options.units, options.steps, options.batch)
    alone: dict[str, Any] = {}
    found = {}
    for way in options.ways:
        _, backend = WAYS[way]
        if backend not in alone:
            alone[backend] = run("one", backend, *arguments)
        found[way] = (alone[backend], run(way, backend, *arguments))
    titles = [f"{title} ({backend})" for title, backend in (WAYS[way] for way in found)]
    if options.throughput:
        rows = [
            [title, f"{one:,.0f}", f"{two:,.0f}", f"{two / one:.2f}"]
            for title, (one, two) in zip(titles, found.values(), strict=True)
        ]
        titles = ["sequences per second", "one replica", "two replicas", "ratio"]
        report(options.out, titles, rows)
        return
    rows = []
    for name in options.only:
        row = [f"`{LAYERS[name]}`" if name in LAYERS else name]
        for one, two in ((one[name], two[name]) for one, two in found.values()):
            row.append(
                f"{distance(one['loss'], two['loss']):.0e}, "
                f"{distance(one['after'], two['after']):.0e}"
            )
            moved = distance(one["before"], one["after"])
        rows.append([*row, f"{moved:.0e}"])
    titles = [f"losses, weights in {options.dtype}", *titles, "weights moved by"]
    report(options.out, titles, rows)


if __name__ == "__main__":
    main()
