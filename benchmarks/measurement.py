"""Measures candidates in alternation, in a separate process.

`recurrence.py` runs it with a task in JSON on standard input. It prints `RESULT` and a
line of JSON.
"""

import gc
import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from candidates import CANDIDATES, keras_steps
from shapes import Shape
from turns import medians_in_turns

MIB = 2**20


def measure_times(shape: Shape, names: list[str], repeats: int) -> dict[str, Any]:
    """Measures the steps in alternation, so that other load slows all equally."""
    results: dict[str, Any] = {}
    steps = {}
    for name in names:
        try:
            train, infer = CANDIDATES[name](shape)
        except ImportError as error:
            results[name] = {"skipped": str(error)}
            continue
        start = time.perf_counter()
        train()
        first = time.perf_counter() - start
        if infer is not None:
            infer()
        train()
        steps[name] = {"train": train, "infer": infer}
        results[name] = {"first": first}
    for name, medians in medians_in_turns(steps, repeats).items():
        results[name] |= medians
        # The first step includes compilation and one execution.
        compiling = results[name]["first"] - results[name]["train"]
        results[name]["compile"] = max(0.0, compiling)
    return results


def measure_memory(shape: Shape, name: str) -> dict[str, Any]:
    """Measures the peak memory of training steps, less that of the idle process."""
    # Keeps the one-time setup of the backend out of the measurement.
    import keras

    warm, _ = keras_steps(keras.layers.SimpleRNN, Shape(4, 4, 2, shape.jit_compile))
    warm()
    train, _ = CANDIDATES[name](shape)
    return {"memory_mib": peak_over_idle(train)}


def peak_over_idle(train: Callable[[], Any]) -> float:
    """Measures the peak memory of this process in excess of its current memory."""
    gc.collect()
    with open("/proc/self/statm", encoding="utf-8") as file:
        idle = int(file.read().split()[1]) * resource.getpagesize()
    for _ in range(3):
        train()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return (peak - idle) / MIB


def main() -> None:
    """Runs the task on standard input and prints the results."""
    task = json.load(sys.stdin)
    shape = Shape(**task["shape"])
    if task["kind"] == "memory":
        results = {name: measure_memory(shape, name) for name in task["names"]}
    else:
        results = measure_times(shape, task["names"], task["repeats"])
    print("RESULT " + json.dumps(results))


if __name__ == "__main__":
    main()
