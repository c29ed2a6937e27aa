"""Draws the papers' figures of how states and gradients propagate.

    python examples/figures.py gradient-norms --out out/figures
    python examples/figures.py all --out out/figures

gradient-norms  ||dL/dh_t|| of scoRNN and an LSTM on adding, T = 500, at the start and
                after 300 updates (Helfrich, dissertation, 2020, figure 2.11); minutes
heat-maps       ||dh_tau/dx_t|| of ENRNN's long-term and short-term units on adding,
                T = 50, n = 24 + 16, after five epochs (figures 2.15 and 2.16); minutes
trajectories    states of two units and their vector field, for plain RNNs, and for RNNs
                with feedback whose matrices differ in their eigenvalues (Chang et al.,
                2019, figure 1); seconds
jacobians       moduli of the eigenvalues of dh_T/dh_0 by T and diffusion, on noise,
                before training (figure 2 shows trained networks); a minute

Writes a PNG file for each figure, and a JSON file with its numbers.
"""

import argparse
from pathlib import Path
from typing import Any

import keras
import numpy as np

from experiments.errors import plain_errors
from experiments.layers import make_layer, title_of
from experiments.optimizers import make_optimizer
from experiments.options import check_seed
from experiments.presets import find
from experiments.records import run_record
from keras_ortho import ENRNN, AntisymmetricRNN
from keras_ortho.diagnostics import (
    gradient_norms,
    input_sensitivity,
    jacobian_eigenvalues,
    plot_eigenvalue_moduli,
    plot_gradient_norms,
    plot_heat_map,
    plot_trajectories,
)
from keras_ortho.files import write_json
from keras_ortho.tasks import adding


@plain_errors()
def main() -> None:
    """Runs the command."""
    options = parse()
    check_seed(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    for name in FIGURES if options.figure == "all" else [options.figure]:
        print(name)
        keras.utils.set_random_seed(options.seed)
        record = run_record(vars(options) | {"figure": name})
        numbers = FIGURES[name](options.out / f"{name}.png", options)
        write_json(options.out / f"{name}.json", {**record, "numbers": numbers})


def parse() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("figure", choices=[*FIGURES, "all"])
    add("--out", type=Path, required=True, help="folder for the figures")
    add("--seed", type=int, default=0, help="(0)")
    add("--smoke", action="store_true", help="try it, with little training")
    return parser.parse_args()


def on_adding(layer: keras.layers.Layer, length: int, rates: Any) -> keras.Model:
    """Makes a network for the adding problem."""
    inputs = keras.Input((length, 2))
    model = keras.Sequential([inputs, layer, keras.layers.Dense(1)])
    model.compile(make_optimizer(rates), "mse")
    return model


def draw_gradient_norms(path: Path, options: argparse.Namespace) -> dict:
    """Draws the gradient norms of the states, before and after some training."""
    length, updates = (30, 5) if options.smoke else (500, 300)
    task = adding.load(length, train_size=50 * updates, test_size=50, seed=options.seed)
    x, y = next(iter(task.test))
    norms = {}
    for name in ("scornn", "lstm"):
        preset = find("adding", name, length=400)
        layer = make_layer(name, preset.units, preset.arguments)
        model = on_adding(layer, length, preset.rates)
        norms[f"{title_of(name)}, start"] = gradient_norms(model, x, y).tolist()
        model.fit(task.train, shuffle=False, verbose=0)
        after = gradient_norms(model, x, y).tolist()
        norms[f"{title_of(name)}, {updates} updates"] = after
    plot_gradient_norms(path, norms)
    return norms


def draw_heat_maps(path: Path, options: argparse.Namespace) -> dict:
    """Draws how long each kind of ENRNN unit depends on an input."""
    epochs, size = (1, 500) if options.smoke else (5, 100_000)
    task = adding.load(50, train_size=size, test_size=50, seed=options.seed)
    rates = {"others": "rmsprop 1e-3", "recurrent": "rmsprop 1e-4"}
    model = on_adding(ENRNN(24, 16, negative_ones=0.3), 50, rates)
    model.fit(task.train, epochs=epochs, shuffle=False, verbose=2)
    x, _ = next(iter(task.test))
    parts = {"short-term units": slice(24, None), "long-term units": slice(0, 24)}
    maps = {
        name: input_sensitivity(model, x[:20], units=units)
        for name, units in parts.items()
    }
    plot_heat_map(path, maps)
    return {name: values.tolist() for name, values in maps.items()}


def draw_trajectories(path: Path, options: argparse.Namespace) -> dict:
    """Draws the trajectories of two units under eight recurrent matrices."""
    random = np.random.default_rng(options.seed)
    cosine, sine = np.cos(0.5), np.sin(0.5)
    plain = {
        "plain, Gaussian": random.normal(size=(2, 2)),
        "plain, identity": np.eye(2),
        "plain, Gaussian again": random.normal(size=(2, 2)),
        "plain, orthogonal": np.array([[cosine, -sine], [sine, cosine]]),
    }
    turning = np.array([[0.0, 2.0], [-2.0, 0.0]])
    feedback = {
        "feedback, positive eigenvalues": 2 * np.eye(2),
        "feedback, negative eigenvalues": -2 * np.eye(2),
        "feedback, imaginary eigenvalues": turning,
        "feedback, imaginary with diffusion": turning - 0.1 * np.eye(2),
    }
    zero: dict[str, Any] = {"bias_initializer": "zeros"}
    layers: dict[str, keras.layers.Layer] = {}
    for name, matrix in plain.items():
        start = keras.initializers.Constant(matrix)
        layers[name] = keras.layers.SimpleRNN(2, recurrent_initializer=start, **zero)
    for name, matrix in feedback.items():
        layers[name] = AntisymmetricRNN(
            2, recurrent_initializer=matrix, step_size=0.1, antisymmetric=False, **zero
        )
    for layer in layers.values():
        layer.build((None, None, 1))
    plot_trajectories(path, layers, num_steps=20 if options.smoke else 200)
    return {name: matrix.tolist() for name, matrix in {**plain, **feedback}.items()}


def draw_jacobians(path: Path, options: argparse.Namespace) -> dict:
    """Draws the moduli of the eigenvalues of end-to-end Jacobians."""
    units, lengths = (6, (5, 10)) if options.smoke else (64, (100, 200, 400, 800))
    random = np.random.default_rng(options.seed)
    x = random.normal(size=(2, lengths[-1], 96)).astype("float32")
    layers = {"LSTM": keras.layers.LSTM(units)} | {
        f"AntisymmetricRNN, diffusion {diffusion}": AntisymmetricRNN(
            units, step_size=0.01, diffusion=diffusion
        )
        for diffusion in (0.001, 0.01, 0.1, 1.0, 5.0, 10.0)
    }
    found: dict[str, dict[float, np.ndarray]] = {}
    for name, layer in layers.items():
        model = keras.Sequential([keras.Input((None, 96)), layer])
        found[name] = {
            length: np.abs(jacobian_eigenvalues(model, x[:, :length]))
            for length in lengths
        }
    plot_eigenvalue_moduli(path, found)
    return {
        name: {n: [float(of.mean()), float(of.std())] for n, of in by_length.items()}
        for name, by_length in found.items()
    }


FIGURES = {
    "gradient-norms": draw_gradient_norms,
    "heat-maps": draw_heat_maps,
    "trajectories": draw_trajectories,
    "jacobians": draw_jacobians,
}


if __name__ == "__main__":
    main()
