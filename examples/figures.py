"""Draws the papers' figures of how states and gradients propagate.

    python examples/figures.py gradient-norms --out out/figures

gradient-norms  ||dL/dh_t|| of scoRNN and an LSTM on adding, T = 500, at the start and
                after 300 updates (Helfrich, dissertation, 2020, figure 2.11); minutes
heat-maps       ||dh_tau/dx_t|| of ENRNN's long-term and short-term units on adding,
                T = 50, n = 24 + 16, after five epochs (figures 2.15 and 2.16); minutes
trajectories    states of two units and their vector field, of plain RNNs and of RNNs
                with feedback, by eigenvalues (Chang et al., 2019, figure 1); seconds
jacobians       moduli of the eigenvalues of dh_T/dh_0 by T and diffusion, on noise,
                before training (figure 2 shows trained networks); a minute

Writes the figure as PNG, and its numbers as JSON.
"""

import argparse
from pathlib import Path

import keras
import numpy as np

from experiments.engine import plain_errors
from experiments.layers import make_layer, title_of
from experiments.optimizers import make_optimizer
from experiments.options import check_values, new_parser
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
    """Draws one of the figures."""
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(options.seed)
    record = run_record(vars(options))
    path = options.out / f"{options.figure}.png"
    numbers = FIGURES[options.figure](path, options)
    write_json(path.with_suffix(".json"), {**record, "numbers": numbers})


def parse() -> argparse.Namespace:
    """Reads the command line."""
    parser = new_parser(__doc__)
    parser.add_argument("figure", choices=FIGURES)
    options = parser.parse_args()
    check_values(options)
    return options


def draw_gradient_norms(path: Path, options: argparse.Namespace) -> dict:
    """Draws the gradient norms of the states, before and after some training."""
    length, updates = (30, 5) if options.smoke else (500, 300)
    task = adding.load(length, train_size=50 * updates, test_size=50, seed=options.seed)
    x, y = next(iter(task.test))
    norms = {}
    for name in ("scornn", "lstm"):
        preset, title = find("adding", name, length=400), title_of(name)
        layer = make_layer(name, preset.units, preset.arguments)
        model = keras.Sequential(
            [keras.Input((length, 2)), layer, keras.layers.Dense(1)]
        )
        model.compile(make_optimizer(preset.rates, updates), "mse")
        norms[f"{title}, start"] = gradient_norms(model, x, y).tolist()
        model.fit(task.train, shuffle=False, verbose=2)
        norms[f"{title}, {updates} updates"] = gradient_norms(model, x, y).tolist()
    plot_gradient_norms(path, norms)
    return norms


def draw_heat_maps(path: Path, options: argparse.Namespace) -> dict:
    """Draws how long each kind of ENRNN unit depends on an input."""
    epochs, size = (1, 500) if options.smoke else (5, 100_000)
    task = adding.load(50, train_size=size, test_size=50, seed=options.seed)
    layer = ENRNN(24, 16, negative_ones=0.3)
    model = keras.Sequential([keras.Input((50, 2)), layer, keras.layers.Dense(1)])
    rates = {"others": "rmsprop 1e-3", "recurrent": "rmsprop 1e-4"}
    model.compile(make_optimizer(rates, size // 50), "mse")
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
    turning = np.array([[0.0, 2.0], [-2.0, 0.0]])
    matrices = {
        "plain, Gaussian": random.normal(size=(2, 2)),
        "plain, identity": np.eye(2),
        "plain, Gaussian again": random.normal(size=(2, 2)),
        "plain, orthogonal": np.array([[cosine, -sine], [sine, cosine]]),
        "feedback, positive eigenvalues": 2 * np.eye(2),
        "feedback, negative eigenvalues": -2 * np.eye(2),
        "feedback, imaginary eigenvalues": turning,
        "feedback, imaginary with diffusion": turning - 0.1 * np.eye(2),
    }
    layers = {}
    for name, matrix in matrices.items():
        if name.startswith("plain"):
            start = keras.initializers.Constant(matrix)
            layer = keras.layers.SimpleRNN(2, recurrent_initializer=start)
        else:
            layer = AntisymmetricRNN(
                2, recurrent_initializer=matrix, step_size=0.1, antisymmetric=False
            )
        layer.build((None, None, 1))
        layers[name] = layer
    plot_trajectories(path, layers, num_steps=20 if options.smoke else 200)
    return {name: matrix.tolist() for name, matrix in matrices.items()}


def draw_jacobians(path: Path, options: argparse.Namespace) -> dict:
    """Draws the moduli of the eigenvalues of end-to-end Jacobians."""
    units, lengths = (6, (5, 10)) if options.smoke else (64, (100, 200, 400, 800))
    random = np.random.default_rng(options.seed)
    x = random.normal(size=(2, lengths[-1], 96)).astype("float32")
    layers = {"LSTM": keras.layers.LSTM(units)}
    for gamma in (0.001, 0.01, 0.1, 1.0, 5.0, 10.0):
        layer = AntisymmetricRNN(units, step_size=0.01, diffusion=gamma)
        layers[f"AntisymmetricRNN, diffusion {gamma}"] = layer
    found: dict[str, dict[float, np.ndarray]] = {name: {} for name in layers}
    for name, layer in layers.items():
        model = keras.Sequential([keras.Input((None, 96)), layer])
        for length in lengths:
            found[name][length] = np.abs(jacobian_eigenvalues(model, x[:, :length]))
    plot_eigenvalue_moduli(path, found)
    return {
        name: {n: [float(of.mean()), float(of.std())] for n, of in moduli.items()}
        for name, moduli in found.items()
    }


FIGURES = {
    "gradient-norms": draw_gradient_norms,
    "heat-maps": draw_heat_maps,
    "trajectories": draw_trajectories,
    "jacobians": draw_jacobians,
}


if __name__ == "__main__":
    main()
