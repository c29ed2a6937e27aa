"""Times updates of a network on one core or two; `replicas.py` runs it.

Its argument is a task in JSON: `"way"` (`"one"`, or the name of a `Way`); `"cores"`,
the cores of this process; `"network"`, an expression; `"units"`, `"steps"`, `"batch"`
(the batch size over all replicas) and `"updates"`; with several processes also
`"address"` and `"process"`. It prints `RESULT` and the time in seconds of each run,
which consists of `"updates"` updates.
"""

import json
import os
import sys
import time

import numpy as np

REPLICAS, FEATURES, RUNS = 2, 32, 5


def main() -> None:
    """Runs the task of the command line."""
    task = json.loads(sys.argv[1])
    # Must precede the import of a backend, which counts the cores for its threads.
    os.sched_setaffinity(0, task["cores"])
    from ten_updates import scope

    with scope(task):
        seconds = measure(task)
    if not task.get("process"):
        print("RESULT", json.dumps(seconds))


def measure(task: dict) -> list[float]:
    """Times runs of updates, after a first run that compiles."""
    import keras

    import keras_ortho

    random = np.random.default_rng(0)
    batch = task["batch"]
    if task["way"] == "processes":
        batch //= REPLICAS
    size = batch * task["updates"]
    x = random.normal(size=(size, task["steps"], FEATURES)).astype("float32")
    y = random.normal(size=(size, 1)).astype("float32")
    keras.utils.set_random_seed(0)
    names = {**vars(keras_ortho.cells), "keras": keras, "n": task["units"]}
    model = keras.Sequential(
        [
            keras.Input(x.shape[1:]),
            eval(task["network"], names),
            keras.layers.Dense(1),
        ]
    )
    model.compile(keras_ortho.optimizers.paper_optimizer(), "mse")
    seconds = []
    for _ in range(RUNS + 1):
        start = time.perf_counter()
        model.fit(x, y, batch_size=batch, shuffle=False, verbose=0)
        seconds.append(time.perf_counter() - start)
    return seconds[1:]


if __name__ == "__main__":
    main()
