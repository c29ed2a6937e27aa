"""Full-capacity unitary RNN, whose recurrent matrix the optimizer keeps unitary."""

from typing import Unpack

import keras

from keras_ortho.cells.cell import SMOOTHED, CellArguments, RecurrentCell
from keras_ortho.cells.layer import LayerArguments, RecurrentLayer
from keras_ortho.parametrizations.unitary import FullUnitary

__all__ = ["FullURNN", "FullURNNCell"]


@keras.saving.register_keras_serializable(package="keras_ortho")
class FullURNNCell(RecurrentCell):
    """Cell of `FullURNN`, which describes its step, arguments and weights.

    Args:
        units, half_gradient: As for `FullURNN`.
        **kwargs: Arguments of `keras_ortho.RecurrentCell`.

    Example:
    >>> keras.layers.RNN(FullURNNCell(116))(np.zeros((32, 100, 1))).shape
    (32, 232)
    """

    complex_state = True
    paper_arguments = SMOOTHED

    def __init__(
        self, units: int, half_gradient: bool = False, **kwargs: Unpack[CellArguments]
    ) -> None:
        kwargs.setdefault("recurrent_initializer", "unitary_composition")
        kwargs.setdefault("bias_initializer", "small_uniform")
        kwargs.setdefault("initial_state_initializer", "lecun_uniform")
        kwargs.setdefault("trainable_initial_state", True)
        super().__init__(units, FullUnitary(half_gradient), **kwargs)
        self.half_gradient = half_gradient


@keras.saving.register_keras_serializable(package="keras_ortho")
class FullURNN(RecurrentLayer):
    """Full-capacity unitary RNN layer: runs `FullURNNCell` over a sequence.

    Each step computes `h' = modReLU(x U + h W)` with `n` complex units, stored as `2n`
    real numbers. `W` itself is the variable: it starts as a unitary matrix, and
    `keras_ortho.optimizers.StiefelDescent` keeps it unitary, as part of
    `keras_ortho.optimizers.paper_optimizer`. Any other optimizer makes it non-unitary
    at its first step, and a warning is issued.

    Args:
        units: Number of complex units `n`, a positive integer.
        half_gradient: Whether the gradient with respect to `W` omits what reaches it
            through the imaginary parts of the state, as in the authors' code for the
            copying task and for speech. Default: `False`.
        recurrent_initializer: Initializer for `W`, or an orthogonal or unitary array.
            Default: `"unitary_composition"`, a random matrix of the `RestrictedURNN`.
        bias_initializer: Default: `"small_uniform"`.
        initial_state_initializer: Default: `"lecun_uniform"`, uniform up to
            `sqrt(3 / (2n))`.
        trainable_initial_state: Default: `True`.
        **kwargs: Arguments of `keras_ortho.RecurrentCell` and `RecurrentLayer`.

    Weights:
        Those of all cells; `recurrent_unitary` of shape `(2, n, n)`, the real and the
        imaginary part of `W`.

    Example:
    >>> inputs = keras.Input((784, 1))
    >>> model = keras.Model(inputs, keras.layers.Dense(10)(FullURNN(116)(inputs)))
    >>> model.compile(optimizers.paper_optimizer(), "mse")

    Reference:
    [Wisdom et al., 2016](https://arxiv.org/abs/1611.00035)
    """

    cell_class = FullURNNCell

    def __init__(
        self, units: int, half_gradient: bool = False, **kwargs: Unpack[LayerArguments]
    ) -> None:
        super().__init__(units, half_gradient, **kwargs)
