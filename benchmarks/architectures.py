"""Measures the training step of every layer relative to a baseline.

The baseline is Keras's `SimpleRNN` with the same number of real state entries, and so
with the same product at each time step; or, with `--over loop`, Keras's loop around the
layer's own cell. Each pair runs in its own process, in alternation, and the medians are
compared. `GORU`, with its gates, and `LSTM` have more products. The first step, which
traces and compiles, is timed separately.

Run it as `python benchmarks/architectures.py [--out out/benchmarks]`; it writes a table
and a JSON file. `KERAS_BACKEND` chooses the backend.
"""

import argparse
import os
from pathlib import Path

from layers import LAYERS
from options import positive_int
from processes import run
from reports import write_report
from tqdm import tqdm

from experiments.tables import table

OTHERS = {"SimpleRNN": "keras.layers.SimpleRNN(n)", "loop": "keras.layers.RNN(cell)"}
SIZES = ("state", "steps", "batch", "repeats")


def main() -> None:
    """Runs the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--repeats", type=positive_int, default=5, help="of each step")
    parser.add_argument("--only", nargs="+", choices=LAYERS, default=list(LAYERS))
    parser.add_argument("--over", choices=OTHERS, default="SimpleRNN")
    parser.add_argument(
        "--state", type=positive_int, default=128, help="its real entries"
    )
    parser.add_argument("--steps", type=positive_int, default=784, help="in a sequence")
    parser.add_argument("--batch", type=positive_int, default=128, help="sequences")
    parser.add_argument("--out", type=Path, default=Path("out/benchmarks"))
    options = parser.parse_args()
    jit_compile = os.environ.get("KERAS_BACKEND") == "jax"
    rows = []
    for name in tqdm(options.only, unit="layer"):
        expression = LAYERS[name]
        task = {"layer": expression, "other": OTHERS[options.over]}
        sizes = {key: getattr(options, key) for key in SIZES}
        # In a separate process, without the other layers in memory.
        medians = run(
            "architecture_steps.py", {**task, **sizes, "jit_compile": jit_compile}
        )
        ratio = medians["layer"] / medians["other"]
        rows.append({"name": name, "made by": expression, **medians, "ratio": ratio})
    shape = f"n = {options.state}, T = {options.steps}, B = {options.batch}"
    other = options.over
    titles = [shape, "training step, ms", f"{other}, ms", "ratio"]
    titles += ["first step, s", f"{other}, s"]
    cells = [
        [
            f"`{row['made by']}`",
            f"{1e3 * row['layer']:.0f}",
            f"{1e3 * row['other']:.0f}",
            f"{row['ratio']:.2f}",
            f"{row['first layer']:.1f}",
            f"{row['first other']:.1f}",
        ]
        for row in rows
    ]
    lines = table(titles, cells, right=True)
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    write_report(options.out / f"architectures-{backend}", {"rows": rows}, lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
