"""Measures the benefit of the recurrence's hand-written gradient on PyTorch.

Compares a training step of each layer with the same step in which PyTorch
differentiates the loop over time. The two run in alternation in one process, and their
CPU times are compared.

Run it as `KERAS_BACKEND=torch python benchmarks/torch_gradient.py`; it writes a table
and a JSON file. `pip install ".[torch]"` installs PyTorch.
"""

import argparse
import functools
import statistics
import time
from pathlib import Path
from typing import Any

import keras
import numpy as np
from options import positive_int
from reports import write_report
from turns import in_turns

from experiments.tables import table
from keras_ortho import GORU, ORNN, AntisymmetricRNN, ScoRNN, ScuRNN
from keras_ortho.backend import with_gradient
from keras_ortho.recurrence import sequence

LAYERS = {
    "ScoRNN(170)": lambda: ScoRNN(170),
    "ScuRNN(116)": lambda: ScuRNN(116),
    "ORNN(128, reflections=16)": lambda: ORNN(128, reflections=16),
    "AntisymmetricRNN(128)": lambda: AntisymmetricRNN(128),
    "AntisymmetricRNN(128, gated=True)": lambda: AntisymmetricRNN(128, gated=True),
    "GORU(128)": lambda: GORU(128),
}
STEPS, BATCH = 200, 50


def main() -> None:
    """Runs the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--repeats", type=positive_int, default=20, help="of each step")
    parser.add_argument("--out", type=Path, default=Path("out/benchmarks"))
    options = parser.parse_args()
    if keras.backend.backend() != "torch":
        parser.error("it is about KERAS_BACKEND=torch")
    by_hand = True

    def chosen(forward: Any, backward: Any, *, once: bool = False) -> Any:
        if not by_hand:
            return lambda *inputs: forward(*inputs)[0]
        return with_gradient(forward, backward, once=once)

    sequence.with_gradient = chosen  # The recurrence looks it up at each call.
    rows: dict[str, float] = {}
    x = np.random.default_rng(0).random((BATCH, STEPS, 2), "float32")
    y = x.sum((1, 2))[:, None] / STEPS
    for name, make in LAYERS.items():
        model = keras.Sequential(
            [keras.Input((STEPS, 2)), make(), keras.layers.Dense(1)]
        )
        model.compile("adam", "mse")

        def step(model: keras.Model, hand: bool) -> None:
            nonlocal by_hand
            by_hand = hand
            model.train_on_batch(x, y)

        steps = {hand: functools.partial(step, model, hand) for hand in (True, False)}
        in_turns(steps, 2)  # Warms up.
        seconds = in_turns(steps, options.repeats, time.process_time)
        hand, auto = (statistics.median(seconds[hand]) for hand in steps)
        rows[name] = hand / auto
    titles = ["training step", "by hand / PyTorch's own"]
    cells = [[f"`{name}`", f"{ratio:.2f}"] for name, ratio in rows.items()]
    lines = table(titles, cells, right=True)
    write_report(options.out / "torch-gradient", {"ratios": rows}, lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
