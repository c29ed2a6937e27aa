"""Times training steps of two layers; `architectures.py` runs it.

Reads a task in JSON from standard input: `"layer"` and `"other"`, expressions in `n`
(the second may also use the `cell` of the first); `"state"`, the value of `n`;
`"steps"`, `"batch"`, `"repeats"` and `"jit_compile"`. Prints `RESULT` and, in seconds,
the medians of both layers and, as `"first layer"` and `"first other"`, the times of
their first steps, which include tracing and compilation.
"""

import functools
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from turns import in_turns

from keras_ortho import cells
from keras_ortho.optimizers import group_of, paper_optimizer


def main() -> None:
    """Runs the task on standard input."""
    task = json.load(sys.stdin)
    names = {**vars(cells), "keras": keras, "n": task["state"]}
    steps, firsts = {}, {}
    # Keeps the one-time setup of the backend out of the measurements.
    training_step(keras.layers.SimpleRNN(2), {**task, "batch": 2, "steps": 2})()
    for name in ("other", "layer"):
        layer = eval(task["layer"], names)
        if name == "other":
            layer = eval(task["other"], {**names, "cell": getattr(layer, "cell", None)})
        steps[name] = step = training_step(layer, task)
        began = time.perf_counter()
        step()
        firsts[f"first {name}"] = time.perf_counter() - began
        step()  # Some compilation happens only at the second call.
    seconds = in_turns(steps, task["repeats"])
    medians = {name: statistics.median(own) for name, own in seconds.items()}
    print("RESULT " + json.dumps({**medians, **firsts}))


def training_step(layer: keras.layers.Layer, task: dict[str, Any]) -> Callable[[], Any]:
    """Makes a training step of a network with one recurrent layer."""
    random = np.random.default_rng(0)
    x = random.random((task["batch"], task["steps"], 1), "float32")
    y = random.random((task["batch"], 10), "float32")
    model = keras.Sequential(
        [keras.Input(x.shape[1:]), layer, keras.layers.Dense(y.shape[1])]
    )
    # If the optimizer keeps the matrix unitary, that work belongs to the step.
    kept = "unitary" in map(group_of, model.trainable_variables)
    optimizer = paper_optimizer() if kept else "adam"
    model.compile(optimizer, "mse", jit_compile=task["jit_compile"])
    return functools.partial(model.train_on_batch, x, y)


if __name__ == "__main__":
    main()
