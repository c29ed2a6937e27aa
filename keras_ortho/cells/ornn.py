"""oRNN: the orthogonal RNN of Householder reflectors."""

from collections.abc import Mapping
from typing import Any, ClassVar

import keras

from keras_ortho.activations import PAPER_LEAKY_RELU
from keras_ortho.cells.base import RecurrentCell
from keras_ortho.cells.layer import RecurrentLayer
from keras_ortho.parametrizations.householder import Householder


@keras.saving.register_keras_serializable(package="keras_ortho")
class ORNNCell(RecurrentCell):
    """Cell of the orthogonal RNN of Householder reflectors (oRNN).

    One step is `h' = f(x U + h W + b)` with leaky ReLU `f`, and an orthogonal matrix
    whose transpose is the paper's `H_n(u_n) ... H_{n-m+1}(u_{n-m+1})`, a product of
    `m` reflectors, `u_k` living in the last `k` units. They are trained without a
    constraint: the length of a reflector plays no part. Inside a recurrent layer `W`
    is made once for a sequence, not at every step.

    Args:
        units: Number of units `n`, a positive integer.
        reflections: Number of reflectors `m`, in `1 .. n`. Fewer make a family of
            matrices with fewer parameters, of the determinant `(-1)^m`. With all `n`
            every orthogonal matrix can be made, and the last reflector, of a single
            unit, is a sign that chooses the determinant and is not changed by
            training. Default: `None`, all.
        activation: Activation of `x U + h W + b`. Default: leaky ReLU with the
            paper's slope, `keras_ortho.activations.LeakyReLU(0.1)`. `"leaky_relu"`
            is Keras's, of the slope 0.2.
        recurrent_initializer: Initializer of the reflectors, which are then scaled
            to the length 1. Or, with all reflectors, any initializer of Keras that
            yields an orthogonal matrix, such as `"orthogonal"` or `"identity"`, or
            an array, taken through the inverse map. Default: `"normal_reflectors"`,
            random directions.
        initial_state_initializer: Initializer of the initial state. Default:
            `"state_uniform"`, uniform on `+-sqrt(3 / (2 n))`.
        trainable_initial_state: Whether the state before the first step is trained.
            Default: `True`.
        **kwargs: The arguments of every cell, see `keras_ortho.RecurrentCell`.

    Weights:
        Those of every cell; `reflectors`, packed with the longest first, of shape
        `(m n - m (m - 1) / 2,)` for `m` reflectors.

    Example:
    >>> keras.layers.RNN(ORNNCell(128, reflections=16))(np.zeros((32, 100, 1))).shape
    (32, 128)

    Reference:

    - [Mhammedi et al., 2017](https://proceedings.mlr.press/v70/mhammedi17a.html)
    """

    default_arguments: ClassVar[Mapping[str, Any]] = {
        "activation": PAPER_LEAKY_RELU,
        "recurrent_initializer": "normal_reflectors",
        "initial_state_initializer": "state_uniform",
        "trainable_initial_state": True,
    }

    def __init__(
        self, units: int, reflections: int | None = None, **kwargs: Any
    ) -> None:
        kwargs = {**self.default_arguments, **kwargs}
        super().__init__(units, parametrization=Householder(reflections), **kwargs)
        self.reflections = reflections


@keras.saving.register_keras_serializable(package="keras_ortho")
class ORNN(RecurrentLayer):
    """The orthogonal RNN of Householder reflectors, `ORNNCell` over a sequence.

    Args:
        units: Number of units `n`, a positive integer.
        reflections: Number of reflectors, in `1 .. n`. Default: `None`, all.
        **kwargs: Other arguments of `ORNNCell` and `keras_ortho.RecurrentLayer`.

    Example:
    >>> ORNN(128, reflections=16, return_sequences=True)(np.zeros((32, 100, 1))).shape
    (32, 100, 128)

    Reference:

    - [Mhammedi et al., 2017](https://proceedings.mlr.press/v70/mhammedi17a.html)
    """

    cell_class = ORNNCell
