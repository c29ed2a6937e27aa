"""A recurrent layer of any parametrization, without a class of its own."""

from collections.abc import Mapping
from typing import Any, ClassVar

import keras

from keras_ortho.cells.base import RecurrentCell
from keras_ortho.cells.layer import RecurrentLayer
from keras_ortho.parametrizations.base import check_parametrization


@keras.saving.register_keras_serializable(package="keras_ortho")
class OrthoRNNCell(RecurrentCell):
    """Cell with a recurrent matrix of any parametrization.

    One step is `h' = activation(x U + h W + b)`, with `W` made by the parametrization
    once for a sequence. Every architecture of the package without gates is this cell
    with a parametrization and defaults of its own.

    Args:
        units: Number of units `n`, complex ones where the parametrization has these, a
            positive integer.
        parametrization: A `keras_ortho.parametrizations.Parametrization`, of the
            package or your own.
        recurrent_initializer: Initializer of the free variables. Or, where the map to
            `W` has an inverse, any initializer of Keras that yields a matrix, or an
            array. Default: `None`, the parametrization's.
        **kwargs: The arguments of every cell, see `keras_ortho.RecurrentCell`.

    Weights:
        Those of every cell and of the parametrization, with its names.

    Example:
    >>> from keras_ortho.parametrizations import Householder
    >>> layer = keras.layers.RNN(OrthoRNNCell(170, Householder(reflections=16)))
    >>> layer(np.zeros((32, 100, 1))).shape
    (32, 170)
    """

    default_arguments: ClassVar[Mapping[str, Any]] = {"recurrent_initializer": None}

    def __init__(self, units: int, parametrization: Any, **kwargs: Any) -> None:
        kwargs = {**self.default_arguments, **kwargs}
        parametrization = check_parametrization(parametrization)
        super().__init__(units, parametrization=parametrization, **kwargs)


@keras.saving.register_keras_serializable(package="keras_ortho")
class OrthoRNN(RecurrentLayer):
    """A recurrent layer of any parametrization, `OrthoRNNCell` over a sequence.

    Args:
        units: Number of units `n`, a positive integer.
        parametrization: A `keras_ortho.parametrizations.Parametrization`, of the
            package or your own.
        **kwargs: Other arguments of `OrthoRNNCell` and `keras_ortho.RecurrentLayer`.

    Example:
    >>> from keras_ortho.parametrizations import Antisymmetric
    >>> layer = OrthoRNN(170, Antisymmetric(diffusion=0.1), activation="tanh")
    >>> layer(np.zeros((32, 100, 1))).shape
    (32, 170)
    """

    cell_class = OrthoRNNCell
