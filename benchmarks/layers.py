"""The layers that the benchmarks compare, each with a state of `n` reals."""

from typing import Any

import keras

from keras_ortho import cells
from keras_ortho.architectures import ARCHITECTURES

# How each makes a state of so many reals.
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
    """Says how a layer is made, of any even number of reals.

    Args:
        name: One of `LAYERS`.
        n: Number of real entries of the state.

    Returns:
        That of `LAYERS`; or where it needs another number of units, the nearest that
        there is.
    """
    if name == "EURNN":  # An even number of complex units.
        return "EURNN(n // 4 * 2)"
    if name == "GORU" and n & (n - 1):
        # As many layers of rotations as the FFT style has, made even.
        return f'GORU(n, style="tunable", capacity={n.bit_length() // 2 * 2})'
    return LAYERS[name]


def make_layer(name: str, n: int) -> keras.layers.Layer:
    """Makes a layer with a state of so many reals.

    Args:
        name: One of `LAYERS`.
        n: Number of real entries of the state.

    Returns:
        The layer, in Keras's dtype policy of the moment.
    """
    names: dict[str, Any] = {**vars(cells), "keras": keras, "n": n}
    return eval(expression(name, n), names)
