"""Trains networks for ten updates in one way, and writes losses and weights.

`distribution.py` runs it in a separate process, because devices and processes must be
chosen before a backend loads. Its argument is a task in JSON: `"way"` (`"one"`,
`"mirrored"`, `"devices"` or `"processes"`); `"networks"`, expressions by name;
`"dtype"`; and `"out"`, a file; with several processes also `"address"`, the address of
the first one, and `"process"`, the number of this one.
"""

import json
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import keras
import numpy as np

import keras_ortho

REPLICAS, UPDATES, BATCH, STEPS, FEATURES = 2, 10, 8, 5, 3
# Number of state entries of a network.
STATE = 16


def main() -> None:
    """Trains the networks of a task."""
    task = json.loads(sys.argv[1])
    results = {}
    with scope(task):
        keras.config.set_floatx(task["dtype"])
        x, y = data(task)
        for name, expression in task["networks"].items():
            keras.utils.set_random_seed(0)
            for key, value in train(expression, x, y).items():
                results[f"{name}/{key}"] = value
    if not task.get("process"):
        np.savez(task["out"], **results)  # type: ignore[arg-type]


def scope(task: dict[str, Any]) -> AbstractContextManager[Any]:
    """Sets up the devices or processes of a task, and returns their scope."""
    way = task["way"]
    if way == "mirrored":
        import tensorflow as tf

        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0],
            [tf.config.LogicalDeviceConfiguration()] * REPLICAS,
        )
        devices = [f"CPU:{number}" for number in range(REPLICAS)]
        return tf.distribute.MirroredStrategy(devices).scope()
    if way == "processes":
        keras.distribution.initialize(task["address"], REPLICAS, task["process"])
    if way in ("devices", "processes"):
        # `data` already gives each process its share.
        distribution = keras.distribution.DataParallel(auto_shard_dataset=False)
        if distribution.num_model_replicas != REPLICAS:
            raise RuntimeError(
                f"There must be {REPLICAS} devices in all. "
                f"Received: {keras.distribution.list_devices()}"
            )
        return distribution.scope()
    return nullcontext()


def data(task: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Draws a batch for each update, and returns this process's share.

    The two halves of a batch, one for each replica, have different means.
    """
    random = np.random.default_rng(0)
    x = random.normal(size=(UPDATES, BATCH, STEPS, FEATURES))
    x[:, BATCH // 2 :] += 1.0
    y = random.normal(size=(UPDATES, BATCH, 2))
    if task["way"] == "processes":
        share = slice(task["process"], None, REPLICAS)
        x, y = (np.split(z, REPLICAS, axis=1)[share][0] for z in (x, y))
    return x.astype(task["dtype"]), y.astype(task["dtype"])


def train(expression: str, x: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """Trains a network with the papers' optimizers."""
    names = {**vars(keras_ortho.cells), "BNPDense": keras_ortho.BNPDense}
    made = eval(expression, {**names, "keras": keras, "np": np, "n": STATE})
    model = keras.Sequential(
        [
            keras.Input(x.shape[2:]),
            *(made if isinstance(made, list) else [made]),
            keras.layers.Dense(2),
        ]
    )
    model.compile(keras_ortho.optimizers.paper_optimizer(), "mse")
    before = model.get_weights()
    history = model.fit(
        *(np.concatenate(batches) for batches in (x, y)),
        batch_size=x.shape[1],
        epochs=UPDATES,
        steps_per_epoch=1,
        shuffle=False,
        verbose=0,
    )
    return {
        "loss": np.asarray(history.history["loss"]),
        **{f"before/{i}": value for i, value in enumerate(before)},
        **{f"after/{i}": value for i, value in enumerate(model.get_weights())},
    }


if __name__ == "__main__":
    main()
