"""uRNN: the unitary evolution RNN, of restricted capacity."""

from typing import Unpack

import keras

from keras_ortho.cells.cell import SMOOTHED, CellArguments, RecurrentCell
from keras_ortho.cells.layer import LayerArguments, RecurrentLayer
from keras_ortho.parametrizations.unitary import RestrictedUnitary

__all__ = ["RestrictedURNN", "RestrictedURNNCell"]


@keras.saving.register_keras_serializable(package="keras_ortho")
class RestrictedURNNCell(RecurrentCell):
    """Cell of `RestrictedURNN`, which describes its step, arguments and weights.

    Args:
        units: As for `RestrictedURNN`.
        **kwargs: Arguments of `keras_ortho.RecurrentCell`.

    Example:
    >>> keras.layers.RNN(RestrictedURNNCell(512))(np.zeros((32, 100, 1))).shape
    (32, 1024)
    """

    complex_state = True
    paper_arguments = SMOOTHED

    def __init__(self, units: int, **kwargs: Unpack[CellArguments]) -> None:
        kwargs.setdefault("recurrent_initializer", "unitary_composition")
        kwargs.setdefault("bias_initializer", "small_uniform")
        kwargs.setdefault("initial_state_initializer", "lecun_uniform")
        kwargs.setdefault("trainable_initial_state", True)
        super().__init__(units, RestrictedUnitary(), **kwargs)


@keras.saving.register_keras_serializable(package="keras_ortho")
class RestrictedURNN(RecurrentLayer):
    """Unitary evolution RNN (uRNN) layer: runs `RestrictedURNNCell` over a sequence.

    Each step computes `h' = modReLU(x U + h W)` with `n` complex units, stored as `2n`
    real numbers, and the unitary matrix `W = D_1 F R_1 P D_2 F^-1 R_2 D_3`: diagonals
    of phases, the discrete Fourier transform, reflections, and a fixed random
    permutation. It has `7n` free real parameters; every unitary matrix needs `n^2`.

    Args:
        units: Number of complex units `n`, a positive integer.
        recurrent_initializer: Initializer for the phases, the reflectors and the
            permutation, not for `W`, as the map to it has no inverse. Default:
            `"unitary_composition"`.
        bias_initializer: Default: `"small_uniform"`.
        initial_state_initializer: Default: `"lecun_uniform"`, uniform up to
            `sqrt(3 / (2n))`.
        trainable_initial_state: Default: `True`.
        **kwargs: Arguments of `keras_ortho.RecurrentCell` and `RecurrentLayer`.

    Weights:
        Those of all cells; `recurrent_phases` of shape `(3, n)`, in radians;
        `recurrent_reflectors` of shape `(2, 2n)`, `[Re v | Im v]`; `permutation`, not
        trained, of shape `(n,)`.

    Example:
    >>> RestrictedURNN(128, return_sequences=True)(np.zeros((32, 100, 1))).shape
    (32, 100, 256)

    Reference:
    [Arjovsky et al., 2016](https://proceedings.mlr.press/v48/arjovsky16.html)
    """

    cell_class = RestrictedURNNCell

    def __init__(self, units: int, **kwargs: Unpack[LayerArguments]) -> None:
        super().__init__(units, **kwargs)
