"""Plots the eigenvalues of each recurrent matrix before and after training.

Layers with 64 units learn to copy over 50 steps in 300 updates of Adam. One figure for
all shows the largest distance of a singular value from 1. Run it as `python
benchmarks/spectra.py [--out docs/spectra]`; it takes a few minutes.
"""

from typing import Any

import keras
import numpy as np
from measuring import parse

from keras_ortho import cells
from keras_ortho.architectures import ARCHITECTURES
from keras_ortho.baselines import rnn
from keras_ortho.diagnostics import (
    kernel_eigenvalues,
    plot_curves,
    plot_eigenvalues,
    spectral_margins,
)
from keras_ortho.optimizers import StiefelDescent, paper_optimizer
from keras_ortho.tasks import copying

UNITS, DELAY, BATCH, MEASUREMENTS = 64, 50, 20, 10


def network(name: str) -> keras.Model:
    """Makes the network for the copying task."""
    make = getattr(cells, name, rnn)
    sizes = (UNITS // 2, UNITS // 2) if name == "ENRNN" else (UNITS,)
    layer = make(*sizes, return_sequences=True)
    inputs = keras.Input((DELAY + 20, 10))
    model = keras.Sequential([inputs, layer, keras.layers.Dense(10)])
    adam, other = (keras.optimizers.Adam(1e-3, clipnorm=1.0) for _ in range(2))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(paper_optimizer(adam, other, StiefelDescent(1e-2)), loss)
    return model


def main() -> None:
    """Runs the benchmark from the command line."""
    options = parse(__doc__, "spectra", [*ARCHITECTURES, "SimpleRNN"], updates=300)
    options.out.mkdir(parents=True, exist_ok=True)
    margins: dict[str, Any] = {}
    for name in options.only:
        keras.utils.set_random_seed(0)
        model = network(name)
        x, y = copying.generate(options.updates * BATCH, DELAY)
        x = np.eye(10, dtype="float32")[x]
        (start,) = kernel_eigenvalues(model).values()
        margins[name] = []
        for part in [np.arange(0), *np.split(np.arange(len(x)), MEASUREMENTS)]:
            if len(part):
                model.fit(x[part], y[part], batch_size=BATCH, verbose=0)
            (found,) = spectral_margins(model).values()
            margins[name].append(float(found.margin))
        (end,) = kernel_eigenvalues(model).values()
        path = options.out / f"{name.lower()}-eigenvalues.png"
        plot_eigenvalues(path, {"start": start, f"{options.updates} updates": end})
        print(f"{name:16} {margins[name][-1]:.2e}", flush=True)
    steps = np.linspace(0, options.updates, MEASUREMENTS + 1).tolist()
    labels: Any = {"xlabel": "update", "ylabel": "max |sigma - 1|", "log": True}
    places = dict.fromkeys(margins, steps)
    plot_curves(options.out / "margins.png", margins, x=places, **labels)


if __name__ == "__main__":
    main()
