"""Measures how far each recurrent matrix drifts from orthogonality in training.

Trains n = 512 units for 2 000 updates (`--units`, `--steps`) with the papers'
optimizers to copy a number, in float32, and records `||W* W - I||_F` after each tenth
of the updates. A matrix computed from free parameters stays within rounding error;
`FullURNN` updates its matrix along the unitary matrices, and drifts.

Run it as `python benchmarks/drift.py [--out out/benchmarks]`; it writes a JSON
file and a figure. It takes most of an hour on two cores.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
from options import positive_int
from reports import write_report

from keras_ortho import EURNN, ORNN, SVDRNN, FullURNN, RestrictedURNN, ScoRNN, ScuRNN
from keras_ortho.diagnostics import plot_curves
from keras_ortho.optimizers import paper_optimizer
from keras_ortho.parametrizations import orthogonality_error, unitarity_error
from keras_ortho.parametrizations.householder import householder_product

BATCH, LENGTH = 8, 20
LAYERS: dict[str, Callable[[int], keras.layers.Layer]] = {
    "scoRNN": ScoRNN,
    "scuRNN": ScuRNN,
    "svdRNN, left factor": SVDRNN,
    "oRNN": ORNN,
    "restricted uRNN": RestrictedURNN,
    "EURNN": lambda n: EURNN(n, capacity=4),
    "full-capacity uRNN": FullURNN,
}


def error(layer: keras.layers.Layer) -> float:
    """Computes the orthogonality or unitarity error of the recurrent matrix.

    For svdRNN, this is the error of the left factor.
    """
    if isinstance(layer, SVDRNN):
        reflectors = layer.cell.left_reflectors
        return orthogonality_error(householder_product(reflectors, layer.units))
    measure = unitarity_error if layer.cell.complex_state else orthogonality_error
    return measure(layer.recurrent_matrix())


def main() -> None:
    """Runs the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--units", type=positive_int, default=512)
    parser.add_argument("--steps", type=positive_int, default=2_000)
    parser.add_argument("--only", nargs="+", choices=LAYERS, default=list(LAYERS))
    parser.add_argument("--out", type=Path, default=Path("out/benchmarks"))
    options = parser.parse_args()
    if options.steps % 10:
        parser.error(f"--steps must be a multiple of 10. Received: {options.steps}")
    path = options.out / f"drift-{keras.backend.backend()}"
    results: dict[str, list[float]] = {}
    each = options.steps // 10
    for name in options.only:
        keras.utils.set_random_seed(0)
        layer = LAYERS[name](options.units)
        model = keras.Sequential(
            [keras.Input((LENGTH, 2)), layer, keras.layers.Dense(1)]
        )
        model.compile(paper_optimizer(), "mse")
        random = np.random.default_rng(0)
        results[name] = [error(layer)]
        for _ in range(10):
            x = random.normal(size=(each * BATCH, LENGTH, 2)).astype("float32")
            model.fit(x, x[:, 0, :1], batch_size=BATCH, verbose=0)
            results[name].append(error(layer))
            print(f"{name:20} {results[name][-1]:.2e}", flush=True)
        steps = [each * i for i in range(11)]
        about = {"units": options.units, "updates": steps}
        write_report(path, {**about, "errors": results})
        plot_curves(
            path.with_suffix(".png"),
            results,
            x=dict.fromkeys(results, steps),
            xlabel="update",
            ylabel="||W* W - I||_F",
            log=True,
        )


if __name__ == "__main__":
    main()
