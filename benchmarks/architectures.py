"""Measures a training step of every layer over one of another.

That is Keras's `SimpleRNN` with as many real state entries, so with the same product
at each step; or, with `--over loop`, Keras's loop around the layer's own cell. The two
take turns in a process of their own, and the medians are compared. `GORU`, with its
gates, and `LSTM` have more products.

Run it as `python benchmarks/architectures.py [--out out/benchmarks]`; it writes a table
and a JSON file. `KERAS_BACKEND` chooses the backend.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from layers import LAYERS
from machine import ROOT, machine
from tqdm import tqdm

OTHERS = {"SimpleRNN": "keras.layers.SimpleRNN(n)", "loop": "keras.layers.RNN(cell)"}

# Without the other layers in memory.
WORKER = """
import json, statistics, sys, time
import keras, keras_ortho
import numpy as np
from keras_ortho import *

expression, other, n, steps, batch, repeats, jit_compile = json.loads(sys.argv[1])
random = np.random.default_rng(0)
x = random.random((batch, steps, 1), "float32")
y = random.random((batch, 10), "float32")
times = {}
models = {}
for name in ("other", "layer"):
    layer = eval(expression)
    if name == "other":
        cell = getattr(layer, "cell", None)
        layer = eval(other)
    model = keras.Sequential(
        [keras.Input((steps, 1)), layer, keras.layers.Dense(10)]
    )
    groups = map(keras_ortho.optimizers.group_of, model.trainable_variables)
    kept = "unitary" in groups  # By its optimizer, which is part of the step.
    optimizer = keras_ortho.optimizers.paper_optimizer() if kept else "adam"
    model.compile(optimizer, "mse", jit_compile=jit_compile)
    for _ in range(2):
        model.train_on_batch(x, y)
    models[name] = model
for _ in range(repeats):
    for name, model in models.items():
        start = time.perf_counter()
        model.train_on_batch(x, y)
        times.setdefault(name, []).append(time.perf_counter() - start)
medians = {name: statistics.median(values) for name, values in times.items()}
print("RESULT " + json.dumps(medians))
"""


def main() -> None:
    """Runs the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--repeats", type=int, default=5, help="of each step")
    parser.add_argument("--only", nargs="+", choices=LAYERS, default=list(LAYERS))
    parser.add_argument("--over", choices=OTHERS, default="SimpleRNN")
    parser.add_argument("--state", type=int, default=128, help="its real entries")
    parser.add_argument("--steps", type=int, default=784, help="in a sequence")
    parser.add_argument("--batch", type=int, default=128, help="sequences")
    parser.add_argument("--out", type=Path, default=Path("out/benchmarks"))
    options = parser.parse_args()
    about = machine()
    jit_compile = about["backend"] == "jax"
    rows = []
    for name in tqdm(options.only, unit="layer"):
        expression = LAYERS[name]
        sizes = [options.state, options.steps, options.batch, options.repeats]
        task = [expression, OTHERS[options.over], *sizes, jit_compile]
        done = subprocess.run(
            [sys.executable, "-c", WORKER, json.dumps(task)],
            capture_output=True,
            text=True,
            cwd=ROOT,
        )
        if done.returncode:
            raise RuntimeError(
                f"A measurement has failed. Received: {name}\n{done.stderr[-2000:]}"
            )
        medians = json.loads(done.stdout.rpartition("RESULT ")[2])
        ratio = medians["layer"] / medians["other"]
        rows.append({"name": name, "made by": expression, **medians, "ratio": ratio})
    lines = [
        f"| n = {options.state}, T = {options.steps}, B = {options.batch} "
        f"| training step, ms | {options.over}, ms | ratio |",
        "|---|--:|--:|--:|",
    ]
    lines += [
        f"| `{row['made by']}` | {1e3 * row['layer']:.0f} "
        f"| {1e3 * row['other']:.0f} | {row['ratio']:.2f} |"
        for row in rows
    ]
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"architectures-{about['backend']}"
    path.with_suffix(".json").write_text(json.dumps({**about, "rows": rows}, indent=1))
    path.with_suffix(".md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
