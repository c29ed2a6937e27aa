"""Plots the spectrum of each recurrent matrix before and after training.

Layers with 64 units train on the copying task with a delay of 50 steps, for 300 updates
(`--updates`) of Adam with learning rate 1e-3; `StiefelDescent` updates `FullURNN`'s
matrix. One figure per layer shows its eigenvalues, and one figure for all layers shows
the largest distance of a singular value from 1.

Run it as `python benchmarks/spectra.py [--out out/benchmarks/spectra]`; it writes the
figures and a JSON file with the largest moduli and the margins. It takes a few minutes.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
from options import positive_int
from reports import write_report

from keras_ortho import ENRNN, cells
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
LAYERS: dict[str, Callable[..., keras.layers.Layer]] = {
    **{name: getattr(cells, name) for name in ARCHITECTURES},
    "ENRNN": lambda units, **options: ENRNN(units // 2, units // 2, **options),
    "SimpleRNN": rnn,
}


def train(name: str, updates: int) -> dict[str, Any]:
    """Trains a layer and measures its recurrent matrix during training."""
    keras.utils.set_random_seed(0)
    each = updates // MEASUREMENTS
    model = keras.Sequential(
        [
            keras.Input((DELAY + 20, 10)),
            LAYERS[name](UNITS, return_sequences=True),
            keras.layers.Dense(10),
        ]
    )
    adam = keras.optimizers.Adam
    model.compile(
        paper_optimizer(
            adam(1e-3, clipnorm=1.0), adam(1e-3, clipnorm=1.0), StiefelDescent(1e-2)
        ),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    x, y = copying.generate(updates * BATCH, DELAY)
    x = np.eye(10, dtype="float32")[x]
    (start,) = kernel_eigenvalues(model).values()
    margins = [margin(model)]
    for part in np.split(np.arange(len(x)), MEASUREMENTS):
        model.fit(x[part], y[part], batch_size=BATCH, verbose=0)
        margins.append(margin(model))
    (end,) = kernel_eigenvalues(model).values()
    return {
        "eigenvalues": {"start": start, f"{MEASUREMENTS * each} updates": end},
        "margins": margins,
    }


def margin(model: keras.Model) -> float:
    """Returns the largest distance of a singular value from 1."""
    (found,) = spectral_margins(model).values()
    return float(found.margin)


def main() -> None:
    """Runs the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--updates", type=positive_int, default=300, help="(300)")
    parser.add_argument("--only", nargs="+", choices=LAYERS, default=list(LAYERS))
    parser.add_argument("--out", type=Path, default=Path("out/benchmarks/spectra"))
    options = parser.parse_args()
    if options.updates % MEASUREMENTS:
        parser.error(
            f"--updates must be a multiple of {MEASUREMENTS}. "
            f"Received: {options.updates}"
        )
    options.out.mkdir(parents=True, exist_ok=True)
    margins, moduli = {}, {}
    for name in options.only:
        found = train(name, options.updates)
        plot_eigenvalues(
            options.out / f"{name.lower()}-eigenvalues.png", found["eigenvalues"]
        )
        margins[name] = found["margins"]
        moduli[name] = {
            when: float(np.abs(values).max())
            for when, values in found["eigenvalues"].items()
        }
        print(f"{name:16} {margins[name][-1]:.2e}", flush=True)
    steps = np.linspace(0, options.updates, MEASUREMENTS + 1).astype(int).tolist()
    plot_curves(
        options.out / "margins.png",
        margins,
        x=dict.fromkeys(margins, steps),
        xlabel="update",
        ylabel="max |sigma - 1|",
        log=True,
    )
    found = {"updates": steps, "margins": margins, "moduli": moduli}
    write_report(options.out / "spectra", found)


if __name__ == "__main__":
    main()
