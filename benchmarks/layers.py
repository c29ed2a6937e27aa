"""Measures the training step of every layer, and its first one, beside a baseline.

The baseline is Keras's `SimpleRNN` or `LSTM` with as many real state entries; or, with
`--over loop`, Keras's loop around the layer's own cell. Each pair runs in its own
process, in turns. The first step includes tracing and compilation. Run it as
`python benchmarks/layers.py`; it writes a table. `KERAS_BACKEND` chooses the backend.
"""

import argparse
import time
from pathlib import Path

import keras
from measuring import LAYERS, OUT, apart, in_turns, keras_steps, make_layer, report


def measure(
    name: str, over: str, state: int, steps: int, batch: int, repeats: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Measures a layer and its baseline: first steps, and medians of later ones."""
    # Keeps the one-time setup of the backend out of the measurements.
    keras_steps(keras.layers.SimpleRNN(2), 2, 2)[0]()
    if over == "loop":
        other = keras.layers.RNN(make_layer(name, state).cell)
    else:
        other = make_layer(over, state)
    firsts, calls = {}, {}
    for key, layer in ((over, other), (name, make_layer(name, state))):
        calls[key], _ = keras_steps(layer, steps, batch)
        start = time.perf_counter()
        calls[key]()
        firsts[key] = time.perf_counter() - start
        calls[key]()  # Some compilation happens only at the second call.
    return firsts, in_turns(calls, repeats)


def main() -> None:
    """Runs the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    add = parser.add_argument
    add("--only", nargs="+", choices=LAYERS, default=list(LAYERS))
    add("--over", choices=["SimpleRNN", "LSTM", "loop"], default="SimpleRNN")
    add("--state", type=int, default=128, help="real entries, a power of two (128)")
    add("--steps", type=int, default=784, help="in a sequence (784)")
    add("--batch", type=int, default=128, help="sequences (128)")
    add("--repeats", type=int, default=5, help="of each step (5)")
    add("--out", type=Path, default=OUT / "layers.md")
    options = parser.parse_args()
    over, rows = options.over, []
    sizes = (options.state, options.steps, options.batch, options.repeats)
    for name in options.only:
        ((firsts, medians),) = apart(measure, (name, over, *sizes))
        row = [f"`{LAYERS[name]}`", f"{1e3 * medians[name]:.3g}"]
        row += [f"{1e3 * medians[over]:.3g}", f"{medians[name] / medians[over]:.2f}"]
        rows.append([*row, f"{firsts[name]:.1f}", f"{firsts[over]:.1f}"])
    shape = f"n = {options.state}, T = {options.steps}, B = {options.batch}"
    titles = [shape, "training step, ms", f"{over}, ms", "ratio"]
    report(options.out, [*titles, "first step, s", f"{over}, s"], rows)


if __name__ == "__main__":
    main()
