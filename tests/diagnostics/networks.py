"""Small networks of float64, and the same in NumPy, from their definitions."""

import dataclasses
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from keras_ortho import ScoRNN
from tests import reference

# Keras's tanh and sigmoid are of float32 on JAX, whatever they get.
EPS = float(
    np.finfo("float64" if keras.backend.backend() == "tensorflow" else "float32").eps
)
STEP = 1e-5  # Of central differences: they err by about its square, 1e-10.


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def scornn(x: np.ndarray, states: list, weights: dict) -> list:
    w = reference.scaled_cayley(weights["recurrent_skew"], weights["recurrent_signs"])
    return [reference.modrelu(x @ weights["kernel"] + states[0] @ w, weights["bias"])]


def simple_rnn(x: np.ndarray, states: list, weights: dict) -> list:
    product = x @ weights["kernel"] + states[0] @ weights["recurrent_kernel"]
    return [np.tanh(product + weights["bias"])]


def lstm(x: np.ndarray, states: list, weights: dict) -> list:
    h, c = states
    z = x @ weights["kernel"] + h @ weights["recurrent_kernel"] + weights["bias"]
    i, f, g, o = np.split(z, 4, axis=-1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return [sigmoid(o) * np.tanh(c), c]


@dataclasses.dataclass(frozen=True)
class Network:
    """A kind of recurrent layer, and one step of it in NumPy."""

    name: str
    make: Callable[..., keras.layers.RNN]
    step: Callable[[np.ndarray, list, dict], list]
    num_states: int = 1

    def __str__(self) -> str:
        return self.name


NETWORKS = [
    Network("ScoRNN", ScoRNN, scornn),
    Network("SimpleRNN", keras.layers.SimpleRNN, simple_rnn),
    Network("LSTM", keras.layers.LSTM, lstm, 2),
]


def randomize(model: keras.Model, seed: int = 0) -> None:
    """Gives every trained weight values of order one half: none stays zero."""
    random = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        variable.assign(random.normal(scale=0.5, size=variable.shape))


def build(network: Network, n: int, m: int, time: int, **kwargs: Any) -> keras.Model:
    model = keras.Sequential(
        [
            keras.Input((time, m), dtype="float64"),
            network.make(n, dtype="float64", **kwargs),
            keras.layers.Dense(1, dtype="float64"),
        ]
    )
    model.compile("sgd", "mse")
    randomize(model)
    return model


def weights_of(layer: keras.layers.Layer) -> dict[str, np.ndarray]:
    return {
        weight.name: np.asarray(keras.ops.convert_to_numpy(weight))
        for weight in layer.weights
    }


def run(
    network: Network,
    layer: keras.layers.RNN,
    x: np.ndarray,
    start: np.ndarray | None = None,
    shift: tuple[int, np.ndarray] | None = None,
) -> np.ndarray:
    """All states of one sequence side by side, `[time + 1, s]`, from the first on.

    `shift` is a step and what to add to the states after it.
    """
    weights = weights_of(layer)
    row = np.zeros(layer.units * network.num_states) if start is None else start
    rows = [row]
    for t, entries in enumerate(x):
        states = network.step(entries, np.split(row, network.num_states), weights)
        row = np.concatenate(states)
        if shift is not None and shift[0] == t:
            row = row + shift[1]
        rows.append(row)
    return np.stack(rows)


def jacobian(function: Callable[[np.ndarray], np.ndarray], at: np.ndarray) -> Any:
    """The derivative of a vector by central differences, a row for each entry."""
    rows = len(function(at))
    return np.stack(
        [
            reference.central_differences(lambda z, i=i: function(z)[i], at, STEP)
            for i in range(rows)
        ]
    )
