"""Measures one call for one frame of one sequence, of every layer over `SimpleRNN`.

A layer as it is makes its recurrent kernel in each call; frozen (`keras_ortho.freeze`)
it has it. `SimpleRNN` has as many real states. All are compiled functions of one frame
of batch 1, and take turns in one process.

Run it as `python benchmarks/frozen_step.py [--state 512] [--out out/benchmarks]`; it
writes a table and a JSON file. TensorFlow backend.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from architectures import LAYERS
from machine import machine
from tqdm import tqdm

from keras_ortho import cells, freeze, initial_states, step_model

FEATURES = 40


def main() -> None:
    """Runs the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--repeats", type=int, default=300, help="of each call")
    parser.add_argument("--only", nargs="+", choices=LAYERS, default=list(LAYERS))
    parser.add_argument("--state", type=int, default=512, help="its real entries")
    parser.add_argument("--out", type=Path, default=Path("out/benchmarks"))
    options = parser.parse_args()
    rows = []
    for name in tqdm(options.only, unit="layer"):
        layer = eval(LAYERS[name], {**vars(cells), "keras": keras, "n": options.state})
        model = _model(layer)
        calls = {
            "as it is": _call(model),
            "frozen": _call(freeze(model)),
            "SimpleRNN": _call(_model(keras.layers.SimpleRNN(options.state))),
        }
        rows.append({"name": name, "made by": LAYERS[name], **_measure(calls, options)})
    about = machine()
    lines = [
        f"| n = {options.state}, one frame | as it is | frozen | SimpleRNN, us |",
        "|---|--:|--:|--:|",
    ]
    lines += [
        f"| `{row['made by']}` | {row['as it is'] / row['SimpleRNN']:.2f} "
        f"| {row['frozen'] / row['SimpleRNN']:.2f} | {1e6 * row['SimpleRNN']:.0f} |"
        for row in rows
    ]
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"frozen-step-{options.state}"
    path.with_suffix(".json").write_text(json.dumps({**about, "rows": rows}, indent=1))
    path.with_suffix(".md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def _model(layer: keras.layers.Layer) -> keras.Model:
    return keras.Sequential([keras.Input((None, FEATURES), batch_size=1), layer])


def _call(model: keras.Model) -> Callable[[], Any]:
    """One step, with the states that the last one gave."""
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


def _measure(
    calls: dict[str, Callable[[], Any]], options: argparse.Namespace
) -> dict[str, float]:
    """Medians of the calls, which take turns."""
    times: dict[str, list[float]] = {kind: [] for kind in calls}
    for _ in range(options.repeats):
        for kind, call in calls.items():
            start = time.perf_counter()
            call()
            times[kind].append(time.perf_counter() - start)
    return {kind: statistics.median(values) for kind, values in times.items()}


if __name__ == "__main__":
    main()
