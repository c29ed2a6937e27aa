"""Measures a large layer with heads relative to its matrix products alone.

Compares training steps of `ScoRNN(n, heads=h)`, `ScoRNN(n)` and `SimpleRNN(n)` with
the products for the same number of blocks: a forward loop, a backward loop, and the
product for the gradient. All run in alternation in one process, on Keras's backend.
With several inputs (`--inputs`), as in a stacked layer, the benchmark also measures
heads that each read only a part of the inputs.

Run it as `python benchmarks/heads.py [--units 1024] [--inputs 1024] [--heads 8] [--out
DIR]`; it writes a table and a JSON file.
"""

import argparse
import functools
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
from candidates import floor_steps, keras_steps
from options import positive_int
from reports import write_report
from shapes import Shape
from turns import in_turns

from experiments.tables import table
from keras_ortho import ScoRNN


def main() -> None:
    """Runs the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    add = functools.partial(parser.add_argument, type=positive_int)
    add("--units", default=1_024)
    add("--inputs", default=1)
    add("--heads", nargs="+", default=[2, 4, 8])
    add("--steps", default=100)
    add("--batch", default=64)
    add("--repeats", default=15, help="of each training step")
    parser.add_argument("--out", type=Path, default=Path("out/benchmarks"))
    options = parser.parse_args()
    for heads in options.heads:
        if options.units % heads or (options.inputs > 1 and options.inputs % heads):
            parser.error(f"--heads must divide --units and --inputs. Received: {heads}")
    shape = Shape(options.units, options.steps, options.batch, False, options.inputs)
    steps: dict[str, Callable[[], Any]] = {
        "SimpleRNN": keras_steps(keras.layers.SimpleRNN, shape)[0],
        "ScoRNN": keras_steps(ScoRNN, shape)[0],
        "products, 1": floor_steps(shape)[0],
    }
    for heads in options.heads:
        make = functools.partial(ScoRNN, heads=heads)
        steps[f"ScoRNN, {heads}"] = keras_steps(make, shape)[0]
        if options.inputs > 1:
            parts = functools.partial(make, mix_inputs=False)
            steps[f"ScoRNN, {heads}, inputs in parts"] = keras_steps(parts, shape)[0]
        steps[f"products, {heads}"] = floor_steps(shape, heads)[0]
    for step in steps.values():  # Compiles the steps.
        step()
        step()
    times = in_turns(steps, options.repeats)
    seconds = {name: statistics.median(own) for name, own in times.items()}
    sizes = f"n = {shape.units}, m = {shape.features}, T = {shape.steps}"
    titles = [f"{sizes}, B = {shape.batch}", "ms", "over its products"]
    cells = []
    for name, own in seconds.items():
        heads = [*name.split(", "), "1"][1]
        floor = seconds[f"products, {heads}"]
        ratios = (own / floor, own / seconds["SimpleRNN"])
        cells.append([name, f"{1e3 * own:.1f}", *(f"{ratio:.2f}" for ratio in ratios)])
    lines = table([*titles, "over SimpleRNN"], cells, right=True)
    path = options.out / f"heads-{keras.backend.backend()}"
    write_report(path, {"shape": vars(shape), "seconds": seconds}, lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
