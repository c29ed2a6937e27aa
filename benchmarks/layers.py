"""Measures every layer beside `SimpleRNN` and Keras's loop around the layer's own cell.

`SimpleRNN` has as many real state entries. The three train in turns, in a process for
each layer; the first step includes tracing and compilation. Run it as `python
benchmarks/layers.py`; it writes a table. `KERAS_BACKEND` chooses the backend.
"""

import measuring
from measuring import LAYERS


def main() -> None:
    """Runs the benchmark from the command line."""
    sizes = {"state": 128, "steps": 784, "batch": 128, "repeats": 5}
    options = measuring.parse(__doc__, "layers.md", LAYERS, **sizes)
    shape = options.state, options.steps, options.batch
    rows = []
    for name in options.only:
        names = name, "SimpleRNN", f"keras.layers.RNN({LAYERS.get(name, name)}.cell)"
        (found,) = measuring.apart(measuring.measure, (names, options.repeats, *shape))
        own, *others = (found[each]["train"] for each in names)
        row = [f"`{LAYERS.get(name, name)}`", f"{1e3 * own:.3g}"]
        for other in others:
            row += [f"{1e3 * other:.3g}", f"{own / other:.2f}"]
        rows.append(row + [f"{found[each]['first']:.1f}" for each in names])
    titles = ["n = {}, T = {}, B = {}".format(*shape), "training step, ms"]
    titles += ["SimpleRNN, ms", "ratio", "loop, ms", "ratio"]
    titles += ["first step, s", "SimpleRNN, s", "loop, s"]
    measuring.report(options.out, titles, rows)


if __name__ == "__main__":
    main()
