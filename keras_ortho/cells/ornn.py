"""oRNN: orthogonal RNN with Householder reflectors."""

from typing import Unpack

import keras

from keras_ortho.activations import PAPER_LEAKY_RELU
from keras_ortho.cells.cell import CellArguments, RecurrentCell
from keras_ortho.cells.layer import LayerArguments, RecurrentLayer
from keras_ortho.parametrizations.householder import Householder

__all__ = ["ORNN", "ORNNCell"]


@keras.saving.register_keras_serializable(package="keras_ortho")
class ORNNCell(RecurrentCell):
    """Cell of `ORNN`, which describes its step, arguments and weights.

    Args:
        units, reflections: As for `ORNN`.
        **kwargs: Arguments of `keras_ortho.RecurrentCell`.

    Example:
    >>> keras.layers.RNN(ORNNCell(128, reflections=16))(np.zeros((32, 100, 1))).shape
    (32, 128)
    """

    def __init__(
        self,
        units: int,
        reflections: int | None = None,
        **kwargs: Unpack[CellArguments],
    ) -> None:
        kwargs.setdefault("activation", PAPER_LEAKY_RELU)
        kwargs.setdefault("recurrent_initializer", "normal_reflectors")
        kwargs.setdefault("initial_state_initializer", "state_uniform")
        kwargs.setdefault("trainable_initial_state", True)
        super().__init__(units, Householder(reflections), **kwargs)
        self.reflections = reflections


@keras.saving.register_keras_serializable(package="keras_ortho")
class ORNN(RecurrentLayer):
    """Householder orthogonal RNN layer: runs `ORNNCell` over a sequence.

    Each step computes `h' = f(x U + h W + b)` with leaky ReLU `f`. The transpose of the
    orthogonal matrix `W` is the paper's `H_n(u_n) ... H_{n-m+1}(u_{n-m+1})`, a product
    of `m` reflectors, where `u_k` acts on the last `k` units. The reflectors are
    trained without constraints: `W` does not depend on their length.

    Args:
        units: Number of units `n`, a positive integer.
        reflections: Number of reflectors `m`, in `1 .. n`. The matrices of fewer than
            `n` have the determinant `(-1)^m`. All `n` reach every orthogonal matrix;
            the last one, of a single unit, is a sign that training does not change.
            Default: `None`, all.
        activation: Default: `keras_ortho.activations.LeakyReLU(0.1)`; Keras's has the
            slope 0.2.
        recurrent_initializer: Initializer for the reflectors, which are then scaled
            to length 1, or, with all reflectors, for an orthogonal `W`. Default:
            `"normal_reflectors"`, random directions.
        initial_state_initializer: Default: `"state_uniform"`, uniform up to
            `sqrt(3 / (2n))`.
        trainable_initial_state: Default: `True`.
        **kwargs: Arguments of `keras_ortho.RecurrentCell` and `RecurrentLayer`.

    Weights:
        Those of all cells; `reflectors`, packed with the longest first, of shape
        `(m n - m (m - 1) / 2,)` for `m` reflectors.

    Example:
    >>> ORNN(128, reflections=16, return_sequences=True)(np.zeros((32, 100, 1))).shape
    (32, 100, 128)

    Reference:
    [Mhammedi et al., 2017](https://proceedings.mlr.press/v70/mhammedi17a.html)
    """

    cell_class = ORNNCell

    def __init__(
        self,
        units: int,
        reflections: int | None = None,
        **kwargs: Unpack[LayerArguments],
    ) -> None:
        super().__init__(units, reflections, **kwargs)
