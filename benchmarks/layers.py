"""Layers that the benchmarks compare, each with a state of `n` real entries."""

from typing import Any

import keras

from keras_ortho import cells
from keras_ortho.architectures import ARCHITECTURES

# Expression for each layer with a state of `n` real entries.
LAYERS = {
    name: f"{name}(n // 2)"
    if getattr(cells, name).cell_class.complex_state
    else f"{name}(n)"
    for name in ARCHITECTURES
} | {
    "ScuRNN-smoothed": 'ScuRNN(n // 2, activation="smoothed_modrelu")',
    "ENRNN": "ENRNN(n // 2, n // 2)",
    "SVDRNN": "SVDRNN(n, reflections=16)",
    "ORNN": "ORNN(n, reflections=16)",
    "LSTM": "keras.layers.LSTM(n)",
}


def expression(name: str, n: int) -> str:
    """Returns the expression that makes a layer for any even number of real entries."""
    if name == "EURNN":  # An even number of complex units.
        return "EURNN(n // 4 * 2)"
    return LAYERS[name]


def make_layer(name: str, n: int) -> keras.layers.Layer:
    """Makes a layer with a state of `n` real entries."""
    names: dict[str, Any] = {**vars(cells), "keras": keras, "n": n}
    return eval(expression(name, n), names)
