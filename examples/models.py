"""The recurrent layers that the examples choose from, by name.

Sizes and settings are those of the adding problem in the papers where they have it
(scoRNN, scuRNN, ENRNN, oRNN, the LSTM), or such that a step costs about as much.
"""

from collections.abc import Callable

import keras

from keras_ortho import (
    ENRNN,
    EURNN,
    GORU,
    NNRNN,
    ORNN,
    SVDRNN,
    AntisymmetricRNN,
    FactorizedRNN,
    FullURNN,
    RestrictedURNN,
    ScoRNN,
    ScuRNN,
)
from keras_ortho.optimizers import RMSpropTF1, paper_optimizer

LAYERS: dict[str, Callable[[], keras.layers.Layer]] = {
    "scoRNN": lambda: ScoRNN(170, negative_ones=85),
    "scuRNN": lambda: ScuRNN(116),
    "ENRNN": lambda: ENRNN(96, 64, negative_ones=29),
    "AntisymmetricRNN": lambda: AntisymmetricRNN(128, step_size=0.1, diffusion=0.001),
    "svdRNN": lambda: SVDRNN(128, reflections=16),
    "oRNN": lambda: ORNN(128, reflections=16),
    "restricted uRNN": lambda: RestrictedURNN(128),
    "full-capacity uRNN": lambda: FullURNN(64),
    "EURNN": lambda: EURNN(128, style="fft"),
    "GORU": lambda: GORU(128),
    "nnRNN": lambda: NNRNN(128),
    "factorized RNN": lambda: FactorizedRNN(128),
    "LSTM": lambda: keras.layers.LSTM(60),
    "SimpleRNN": lambda: keras.layers.SimpleRNN(122),
}


def make_optimizer(name: str) -> keras.optimizers.Optimizer:
    """Makes the optimizer of a layer.

    Args:
        name: One of `LAYERS`.

    Returns:
        The papers' pair, RMSprop at 1e-4 for the free variables of the recurrent
        matrix and Adam at 1e-3; Adam at 1e-2 for the LSTM, as in the papers.
    """
    if name == "LSTM":
        return keras.optimizers.Adam(1e-2)
    return paper_optimizer(
        recurrent=RMSpropTF1(1e-4), others=keras.optimizers.Adam(1e-3)
    )
