"""Measures how much ENRNN's eigenvalue normalization adds to a training step.

Compares a training step (forward pass, gradient, update) of the layer with that of the
same layer without the normalization. The two run in alternation, and the medians are
compared. The short-term matrix is Gaussian, without special structure, and the
normalization is on from the start.

Run it as `python benchmarks/eigenvalue_normalization.py [--long]`; `KERAS_BACKEND`
chooses the backend.
"""

import argparse
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
from options import positive_int
from reports import write_report
from turns import in_turns

from keras_ortho import ENRNN, ENRNNCell
from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations import eigenpair_report

# Long-term units by number of short-term units: the paper's speech and language models,
# and a size in between.
LONG_TERM = {94: 374, 320: 320, 720: 310}
# Batch size and time steps of the language model and of the adding problem.
SHORT, LONG = (32, 50), (50, 750)
GOALS = {94: 1.5, 720: 3.0}
FEATURES = 32


class PlainCell(ENRNNCell):
    """ENRNN cell without normalization of the short-term matrix."""

    def short_term_kernel(self) -> Tensor:
        """Returns the short-term matrix, unnormalized."""
        return self.free_values()[2]


class PlainENRNN(ENRNN):
    """ENRNN layer without normalization of the short-term matrix."""

    cell_class = PlainCell


def training_step(
    layer_class: type[ENRNN], size: int, shape: tuple[int, int], jit_compile: bool
) -> Callable[[], object]:
    """Makes a training step and takes it once, which compiles it."""
    keras.utils.set_random_seed(0)
    layer = layer_class(
        LONG_TERM[size],
        size,
        short_term_initializer=keras.initializers.RandomNormal(
            stddev=size**-0.5, seed=1
        ),
        kernel_initializer="glorot_uniform",
    )
    model = keras.Sequential(
        [keras.Input((shape[1], FEATURES)), layer, keras.layers.Dense(1)]
    )
    layer.cell.normalize.assign(True)
    # A tiny learning rate keeps the matrix, and so the amount of work, unchanged.
    model.compile(keras.optimizers.RMSprop(1e-7), "mse", jit_compile=jit_compile)
    random = np.random.default_rng(0)
    x = random.normal(size=(*shape, FEATURES)).astype("float32")
    y = random.normal(size=(shape[0], 1)).astype("float32")

    def step() -> object:
        return float(model.train_on_batch(x, y))

    step()
    return step


def compare(
    size: int, shape: tuple[int, int], jit_compile: bool, repeats: int
) -> dict[str, Any]:
    """Times the two layers."""
    steps = {
        "normalized": training_step(ENRNN, size, shape, jit_compile),
        "plain": training_step(PlainENRNN, size, shape, jit_compile),
    }
    seconds = in_turns(steps, repeats)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    matrix = keras.initializers.RandomNormal(stddev=size**-0.5, seed=1)((size, size))
    return {
        "short_term_units": size,
        "long_term_units": LONG_TERM[size],
        "batch": shape[0],
        "time": shape[1],
        "jit_compile": jit_compile,
        "squarings": eigenpair_report(matrix)["squarings"],
        "seconds": seconds,
        "medians": medians,
        "ratio": medians["normalized"] / medians["plain"],
        "goal": GOALS.get(size),
    }


def main() -> None:
    """Runs the benchmark, prints a table and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--sizes", type=int, nargs="+", choices=LONG_TERM, default=sorted(LONG_TERM)
    )
    parser.add_argument(
        "--long", action="store_true", help="also the long sequences, (50, 750)"
    )
    parser.add_argument("--repeats", type=positive_int, default=9)
    parser.add_argument("--out", type=Path, default=Path("out/benchmarks"))
    options = parser.parse_args()
    # JAX always compiles with XLA.
    compiled = [True] if keras.backend.backend() == "jax" else [False, True]
    results: list[dict[str, Any]] = []
    print("   s  batch x time  XLA    plain ms  normalized ms  ratio  goal")
    for shape in [SHORT, LONG] if options.long else [SHORT]:
        for size in options.sizes:
            for jit_compile in compiled:
                result = compare(size, shape, jit_compile, options.repeats)
                results.append(result)
                plain, normalized = (
                    1e3 * result["medians"][name] for name in ("plain", "normalized")
                )
                print(
                    f"{size:4}  {shape[0]:5} x {shape[1]:4}  {jit_compile!s:5}"
                    f"  {plain:8.1f}  {normalized:13.1f}  {result['ratio']:5.2f}"
                    f"  {result['goal'] or '':4}",
                    flush=True,
                )
    write_report(options.out / "eigenvalue_normalization", {"results": results})


if __name__ == "__main__":
    main()
