"""Measures the training step of every layer, and its first one, beside a baseline.

The baseline is Keras's `SimpleRNN` or `LSTM` with as many real state entries; or, with
`--over loop`, Keras's loop around the layer's own cell. Each pair runs in its own
process, in turns. The first step includes tracing and compilation. Run it as
`python benchmarks/layers.py`; it writes a table. `KERAS_BACKEND` chooses the backend.
"""

import argparse
import functools
from pathlib import Path

import keras
import measuring
from measuring import LAYERS, keras_steps, make_layer


def measure(
    name: str, over: str, state: int, steps: int, batch: int, repeats: int
) -> dict[str, dict[str, float]]:
    """Measures a layer and its baseline."""
    # Keeps the one-time setup of the backend out of the measurements.
    keras_steps(keras.layers.SimpleRNN(2), 2, 2)[0]()
    if over == "loop":
        other = keras.layers.RNN(make_layer(name, state).cell)
    else:
        other = make_layer(over, state)
    layers = {over: other, name: make_layer(name, state)}
    makers = {
        key: functools.partial(keras_steps, layer, steps, batch)
        for key, layer in layers.items()
    }
    return measuring.measure(makers, repeats)


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
    add("--out", type=Path, default=measuring.OUT / "layers.md")
    options = parser.parse_args()
    over, rows = options.over, []
    sizes = (options.state, options.steps, options.batch, options.repeats)
    for name in options.only:
        (found,) = measuring.apart(measure, (name, over, *sizes))
        own, other = found[name], found[over]
        row = [f"`{LAYERS[name]}`", f"{1e3 * own['train']:.3g}"]
        row += [f"{1e3 * other['train']:.3g}", f"{own['train'] / other['train']:.2f}"]
        rows.append([*row, f"{own['first']:.1f}", f"{other['first']:.1f}"])
    shape = f"n = {options.state}, T = {options.steps}, B = {options.batch}"
    titles = [shape, "training step, ms", f"{over}, ms", "ratio"]
    measuring.report(options.out, [*titles, "first step, s", f"{over}, s"], rows)


if __name__ == "__main__":
    main()
