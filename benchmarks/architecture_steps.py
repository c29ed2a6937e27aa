"""Times training steps of a layer and of another; `architectures.py` runs it.

Reads a task, JSON on its standard input: `"layer"` and `"other"`, expressions of
`n`, the second also of the first one's `cell`; `"state"`, which is `n`, `"steps"`,
`"batch"`, `"repeats"` and `"jit_compile"`. Prints `RESULT` and, in seconds, the medians
of both, and as `"first layer"` and `"first other"` their first steps, with all that is
traced and compiled.
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
    """Runs a task."""
    task = json.load(sys.stdin)
    names = {**vars(cells), "keras": keras, "n": task["state"]}
    steps, firsts = {}, {}
    # What the backend does once, at its very first step, is not the layer's.
    training_step(keras.layers.SimpleRNN(2), {**task, "batch": 2, "steps": 2})()
    for name in ("other", "layer"):
        layer = eval(task["layer"], names)
        if name == "other":
            layer = eval(task["other"], {**names, "cell": getattr(layer, "cell", None)})
        steps[name] = step = training_step(layer, task)
        began = time.perf_counter()
        step()
        firsts[f"first {name}"] = time.perf_counter() - began
        step()  # Some is compiled at the second call only.
    seconds = in_turns(steps, task["repeats"])
    medians = {name: statistics.median(own) for name, own in seconds.items()}
    print("RESULT " + json.dumps({**medians, **firsts}))


def training_step(layer: keras.layers.Layer, task: dict[str, Any]) -> Callable[[], Any]:
    """A step of a network of a layer.

    Args:
        layer: The layer.
        task: The task.

    Returns:
        The step.
    """
    random = np.random.default_rng(0)
    x = random.random((task["batch"], task["steps"], 1), "float32")
    y = random.random((task["batch"], 10), "float32")
    model = keras.Sequential(
        [keras.Input(x.shape[1:]), layer, keras.layers.Dense(y.shape[1])]
    )
    # A matrix that its optimizer keeps unitary: that is part of the step.
    kept = "unitary" in map(group_of, model.trainable_variables)
    optimizer = paper_optimizer() if kept else "adam"
    model.compile(optimizer, "mse", jit_compile=task["jit_compile"])
    return functools.partial(model.train_on_batch, x, y)


if __name__ == "__main__":
    main()
