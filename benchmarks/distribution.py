"""Trains every layer on two replicas, and compares them with one device.

One device takes ten updates, and two replicas on one half of the same batches each, on
the CPU: two devices of TensorFlow, two of JAX, or two JAX processes that communicate
over the loopback interface. The table has the largest differences from one device, in
the ten losses and in the weights. Run it as `python benchmarks/distribution.py [--dtype
float64]`.
"""

import contextlib
import os
import socket
from typing import Any
from unittest import mock

import keras
import measuring
import numpy as np
from measuring import LAYERS, make_layer

from keras_ortho.optimizers import paper_optimizer

REPLICAS, UPDATES, STATE, BATCH, STEPS = 2, 10, 16, 8, 5
NETWORKS = LAYERS | {
    "ScoRNN, rebased": "ScoRNN(n, rebase_every=3)",
    "ScoRNN, dropout": "ScoRNN(n, dropout=0.2, recurrent_dropout=0.2)",
    "BNPDense": "keras.Sequential([keras.layers.Flatten(), BNPDense(n)])",
}
WAYS = {"MirroredStrategy": "tensorflow", "DataParallel": "jax", "processes": "jax"}


def scope(way: str, process: int, address: str) -> Any:
    """Sets up the devices or processes, and returns their scope."""
    if way == "one":
        return contextlib.nullcontext()
    if way == "MirroredStrategy":
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


def data(share: slice) -> list[np.ndarray]:
    """Draws a batch for each update, and returns the share of some replicas."""
    random = np.random.default_rng(0)
    x = random.normal(size=(UPDATES, REPLICAS, BATCH // REPLICAS, STEPS, 3))
    x[:, 1:] += 1  # The two halves of a batch have different means.
    y = random.normal(size=(*x.shape[:3], 2))
    parts = (each[:, share].astype(keras.config.floatx()) for each in (x, y))
    return [each.reshape(-1, *each.shape[3:]) for each in parts]


def trained(
    way: str, process: int, address: str, names: list[str], dtype: str
) -> dict[str, dict[str, list[Any]]]:
    """Trains networks for ten updates; returns their losses and weights."""
    found = {}
    with scope(way, process, address):
        keras.config.set_floatx(dtype)
        x, y = data(slice(process, process + 1 if way == "processes" else None))
        size = {"batch_size": len(x) // UPDATES, "steps_per_epoch": 1}
        for name in names:
            keras.utils.set_random_seed(0)
            inputs = keras.Input(x.shape[1:])
            layer = make_layer(NETWORKS[name], STATE)
            model = keras.Sequential([inputs, layer, keras.layers.Dense(2)])
            model.compile(paper_optimizer(), "mse")
            found[name] = {"before": model.get_weights()}
            fitted = model.fit(x, y, epochs=UPDATES, shuffle=False, verbose=0, **size)
            loss, after = fitted.history["loss"], model.get_weights()
            found[name] |= {"loss": loss, "after": after}
    return found


def run(way: str, backend: str, *arguments: Any) -> dict[str, dict[str, list[Any]]]:
    """Trains in the processes of a way; returns what the first one found."""
    flags = f"--xla_force_host_platform_device_count={REPLICAS}"
    environment = {
        "CUDA_VISIBLE_DEVICES": "",
        "JAX_ENABLE_X64": "1",
        "JAX_PLATFORMS": "cpu",
        "KERAS_BACKEND": backend,
        "OMP_NUM_THREADS": "1",
        "XLA_FLAGS": flags if way == "DataParallel" else "",
    }
    with socket.socket() as listener:  # A free port.
        listener.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    count = REPLICAS if way == "processes" else 1
    tasks = [(way, process, address, *arguments) for process in range(count)]
    with mock.patch.dict(os.environ, environment):
        return measuring.apart(trained, *tasks)[0]


def distance(one: list[Any], other: list[Any]) -> float:
    """Returns the largest absolute difference of arrays."""
    pairs = zip(one, other, strict=True)
    return max(np.abs(np.subtract(a, b, dtype="float64")).max() for a, b in pairs)


def main() -> None:
    """Runs the benchmark from the command line."""
    options = measuring.parse(__doc__, "distribution.md", NETWORKS, dtype="float32")
    arguments = options.only, options.dtype
    ones = {name: run("one", name, *arguments) for name in ("tensorflow", "jax")}
    twos = [run(way, backend, *arguments) for way, backend in WAYS.items()]
    rows = []
    for name in options.only:
        row = [f"`{LAYERS[name]}`" if name in LAYERS else name]
        for backend, found in zip(WAYS.values(), twos, strict=True):
            one, two = ones[backend][name], found[name]
            errors = (distance(one[key], two[key]) for key in ("loss", "after"))
            row.append(", ".join(f"{error:.0e}" for error in errors))
        rows.append([*row, f"{distance(one['before'], one['after']):.0e}"])
    titles = [f"losses, weights in {options.dtype}", *WAYS, "weights moved by"]
    measuring.report(options.out, titles, rows)


if __name__ == "__main__":
    main()
