"""Small networks, and one step of each in NumPy, of float64, from its definition."""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_ortho import ScoRNN
from tests import reference

# Keras's tanh and sigmoid are of float32 on JAX, whatever they get.
EPS = float(
    np.finfo("float64" if keras.backend.backend() == "tensorflow" else "float32").eps
)
STEP = 1e-5  # Of central differences: they err by about its square, 1e-10.


def scornn(x: np.ndarray, h: np.ndarray, weights: dict) -> np.ndarray:
    w = reference.scaled_cayley(weights["recurrent_skew"], weights["recurrent_signs"])
    return reference.modrelu(x @ weights["kernel"] + h @ w, weights["bias"])


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def lstm(x: np.ndarray, states: np.ndarray, weights: dict) -> np.ndarray:
    h, c = np.split(states, 2, axis=-1)
    z = x @ weights["kernel"] + h @ weights["recurrent_kernel"] + weights["bias"]
    i, f, g, o = np.split(z, 4, axis=-1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return np.concatenate([sigmoid(o) * np.tanh(c), c], axis=-1)


class Network(NamedTuple):
    """A kind of recurrent layer, one step of all its states, and their number."""

    make: Callable[..., keras.layers.RNN]
    step: Callable[[np.ndarray, np.ndarray, dict], np.ndarray]
    num_states: int


NETWORKS = {
    "ScoRNN": Network(ScoRNN, scornn, 1),
    "LSTM": Network(keras.layers.LSTM, lstm, 2),
}


def randomize(model: keras.Model, seed: int = 0) -> None:
    """Gives every trained weight values of order one half: none stays zero."""
    random = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        variable.assign(random.normal(scale=0.5, size=variable.shape))


def model_of(*layers: keras.layers.Layer, dtype: str = "float32") -> keras.Model:
    model = keras.Sequential([keras.Input((None, 2), dtype=dtype), *layers])
    model.compile("sgd", "mse")
    randomize(model)
    return model


def weights_of(layer: keras.layers.Layer) -> dict[str, np.ndarray]:
    return {w.name: np.asarray(keras.ops.convert_to_numpy(w)) for w in layer.weights}


def run(
    network: Network,
    layer: keras.layers.RNN,
    x: np.ndarray,
    start: Any = 0.0,
    shift: tuple[int, Any] = (0, 0.0),
) -> np.ndarray:
    """All states of one sequence side by side, `[time + 1, s]`, from the first on.

    `shift` is a step and what to add to the states after it.
    """
    weights = weights_of(layer)
    rows = [np.zeros(layer.units * network.num_states) + start]
    for t, entries in enumerate(x):
        row = network.step(entries, rows[-1], weights)
        rows.append(row + shift[1] if shift[0] == t else row)
    return np.stack(rows)
