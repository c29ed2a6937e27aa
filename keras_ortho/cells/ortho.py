"""Recurrent layer with any parametrization, without a class of its own."""

from typing import Any, Unpack

import keras

from keras_ortho.cells.cell import CellArguments, RecurrentCell
from keras_ortho.cells.layer import LayerArguments, RecurrentLayer
from keras_ortho.parametrizations.base import check_parametrization

__all__ = ["OrthoRNN", "OrthoRNNCell"]


@keras.saving.register_keras_serializable(package="keras_ortho")
class OrthoRNNCell(RecurrentCell):
    """Cell of `OrthoRNN`, which describes its step, arguments and weights.

    Args:
        units, parametrization: As for `OrthoRNN`.
        **kwargs: Arguments of `keras_ortho.RecurrentCell`.

    Example:
    >>> from keras_ortho.parametrizations import Householder
    >>> layer = keras.layers.RNN(OrthoRNNCell(170, Householder(reflections=16)))
    >>> layer(np.zeros((32, 100, 1))).shape
    (32, 170)
    """

    takes_parametrization = True

    def __init__(
        self, units: int, parametrization: Any, **kwargs: Unpack[CellArguments]
    ) -> None:
        super().__init__(units, check_parametrization(parametrization), **kwargs)


@keras.saving.register_keras_serializable(package="keras_ortho")
class OrthoRNN(RecurrentLayer):
    """Recurrent layer with any parametrization: runs `OrthoRNNCell` over a sequence.

    Each step computes `h' = activation(x U + h W + b)`. Every architecture of the
    package without gates is this cell with its own parametrization and defaults.

    Args:
        units: Number of units `n`, a positive integer. They are complex if the
            parametrization is.
        parametrization: A `keras_ortho.parametrizations.Parametrization`, from the
            package or your own.
        **kwargs: Arguments of `keras_ortho.RecurrentCell` and `RecurrentLayer`.

    Weights:
        Those of all cells, and those of the parametrization, by its names.

    Example:
    >>> from keras_ortho.parametrizations import Antisymmetric
    >>> layer = OrthoRNN(170, Antisymmetric(diffusion=0.1), activation="tanh")
    >>> layer(np.zeros((32, 100, 1))).shape
    (32, 170)
    """

    cell_class = OrthoRNNCell

    def __init__(
        self, units: int, parametrization: Any, **kwargs: Unpack[LayerArguments]
    ) -> None:
        super().__init__(units, parametrization, **kwargs)
