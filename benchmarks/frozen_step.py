"""Measures a one-frame call of every layer relative to `SimpleRNN`.

An ordinary layer computes its recurrent kernel in each call; a frozen layer
(`keras_ortho.freeze`) stores it. `SimpleRNN` has the same number of real state entries.
All calls are compiled functions of one frame with batch size 1; each runs in
alternation with that of `SimpleRNN` in one process.

Run it as `python benchmarks/frozen_step.py [--state 512] [--out out/benchmarks]`; it
writes a table and a JSON file. TensorFlow backend.
"""

import argparse
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from layers import LAYERS, expression, make_layer
from options import positive_int
from reports import write_report
from tqdm import tqdm
from turns import in_turns

from experiments.tables import table
from keras_ortho import freeze, initial_states, step_model

FEATURES = 40


def main() -> None:
    """Runs the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "--repeats", type=positive_int, default=300, help="of each call"
    )
    parser.add_argument("--only", nargs="+", choices=LAYERS, default=list(LAYERS))
    parser.add_argument(
        "--state", type=positive_int, default=512, help="its real entries"
    )
    parser.add_argument("--out", type=Path, default=Path("out/benchmarks"))
    options = parser.parse_args()
    rows = []
    for name in tqdm(options.only, unit="layer"):
        model = _model(make_layer(name, options.state))
        simple = _call(_model(keras.layers.SimpleRNN(options.state)))
        row: dict[str, Any] = {
            "name": name,
            "made by": expression(name, options.state),
        }
        for kind, each in (("as it is", model), ("frozen", freeze(model))):
            row[kind] = _ratio(_call(each), simple, options.repeats)
        rows.append(row)
    titles = [f"n = {options.state}, one frame", "as it is", "frozen"]
    cells = [
        [f"`{row['made by']}`", f"{row['as it is']:.2f}", f"{row['frozen']:.2f}"]
        for row in rows
    ]
    lines = table(titles, cells, right=True)
    write_report(options.out / f"frozen-step-{options.state}", {"rows": rows}, lines)
    print("\n".join(lines))


def _model(layer: keras.layers.Layer) -> keras.Model:
    return keras.Sequential([keras.Input((None, FEATURES), batch_size=1), layer])


def _call(model: keras.Model) -> Callable[[], Any]:
    """Makes a function that computes one step from the states of the previous one."""
    step = step_model(model)
    run = tf.function(lambda *given: step(given, training=False), reduce_retracing=True)
    x = tf.constant(np.ones((1, FEATURES), "float32"))
    states = [tf.constant(state) for state in initial_states(model, 1)]

    def call() -> None:
        nonlocal states
        _, *states = run(x, *states)

    call()
    call()
    return call


def _ratio(call: Callable[[], Any], other: Callable[[], Any], repeats: int) -> float:
    """Returns the ratio of the median times of two calls that alternate.

    Only two calls alternate: after one that factorizes a matrix, the next finds the
    CPU caches evicted.
    """
    times = in_turns({"own": call, "other": other}, repeats)
    return statistics.median(times["own"]) / statistics.median(times["other"])


if __name__ == "__main__":
    main()
