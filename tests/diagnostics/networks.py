"""One step of a ScoRNN and of an LSTM in NumPy, of float64, from their definitions."""

import keras
import numpy as np
from scipy.special import expit as sigmoid

from keras_ortho import ScoRNN
from tests import reference

# Keras's tanh and sigmoid are of float32 on JAX, whatever they get.
DTYPE = "float64" if keras.backend.backend() == "tensorflow" else "float32"
EPS = float(np.finfo(DTYPE).eps)
STEP = 1e-5  # Of central differences: they err by about its square, 1e-10.


def scornn(x, h, weights):
    w = reference.scaled_cayley(weights["recurrent_skew"], weights["recurrent_signs"])
    return reference.modrelu(x @ weights["kernel"] + h @ w, weights["bias"])


def lstm(x, states, weights):
    h, c = np.split(states, 2, axis=-1)
    z = x @ weights["kernel"] + h @ weights["recurrent_kernel"] + weights["bias"]
    i, f, g, o = np.split(z, 4, axis=-1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return np.concatenate([sigmoid(o) * np.tanh(c), c], axis=-1)


# A step of all states, side by side, and their number.
STEPS = {ScoRNN: (scornn, 1), keras.layers.LSTM: (lstm, 2)}


def randomize(model, seed=0):
    """Gives every trained weight values of order one half: none stays zero."""
    random = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        variable.assign(random.normal(scale=0.5, size=variable.shape))


def model_of(*layers, dtype="float32"):
    model = keras.Sequential([keras.Input((None, 2), dtype=dtype), *layers])
    model.compile("sgd", "mse")
    randomize(model)
    return model


def run(layer, x, start=0.0, shift=(0, 0.0)):
    """All states of one sequence side by side, `[time + 1, s]`, from the first on.

    `shift` is a step and what to add to the states after it.
    """
    step, num_states = STEPS[type(layer)]
    weights = {w.name: keras.ops.convert_to_numpy(w) for w in layer.weights}
    rows = [np.zeros(layer.units * num_states) + start]
    for t, entries in enumerate(x):
        row = step(entries, rows[-1], weights)
        rows.append(row + shift[1] if shift[0] == t else row)
    return np.stack(rows)
