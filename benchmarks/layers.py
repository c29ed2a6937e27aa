"""Measures every layer beside `SimpleRNN` and Keras's loop around the layer's own cell.

`SimpleRNN` has as many real state entries. The three train in turns, in a process for
each layer; the first step includes tracing and compilation. Run it as `python
benchmarks/layers.py`; it writes a table. `KERAS_BACKEND` chooses the backend.
"""

import keras
import measuring
from measuring import LAYERS, Found, keras_steps, make_layer

OTHERS = ("SimpleRNN", "loop")


def measure(name: str, state: int, steps: int, batch: int, repeats: int) -> Found:
    """Measures a layer and the others."""
    # Keeps the one-time setup of the backend out of the measurements.
    keras_steps(keras.layers.SimpleRNN(2), 2, 2)[0]()
    layers = {
        "SimpleRNN": keras.layers.SimpleRNN(state),
        "loop": keras.layers.RNN(make_layer(name, state).cell),
        name: make_layer(name, state),
    }
    make = lambda key: keras_steps(layers[key], steps, batch)  # noqa: E731
    return measuring.measure(layers, make, repeats)


def main() -> None:
    """Runs the benchmark from the command line."""
    sizes = {"state": 128, "steps": 784, "batch": 128, "repeats": 5}
    options = measuring.parse(__doc__, "layers.md", LAYERS, **sizes)
    rows = []
    for name in options.only:
        arguments = (name, *(getattr(options, size) for size in sizes))
        (found,) = measuring.apart(measure, arguments)
        own, *others = (found[key]["train"] for key in (name, *OTHERS))
        row = [f"`{LAYERS[name]}`", f"{1e3 * own:.3g}"]
        for other in others:
            row += [f"{1e3 * other:.3g}", f"{own / other:.2f}"]
        rows.append(row + [f"{found[key]['first']:.1f}" for key in (name, *OTHERS)])
    titles = [f"n = {options.state}, T = {options.steps}, B = {options.batch}"]
    titles += ["training step, ms"]
    for title in OTHERS:
        titles += [f"{title}, ms", "ratio"]
    titles += ["first step, s", *(f"{title}, s" for title in OTHERS)]
    measuring.report(options.out, titles, rows)


if __name__ == "__main__":
    main()
