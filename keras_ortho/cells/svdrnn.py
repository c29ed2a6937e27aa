"""svdRNN: a recurrent matrix by its singular value decomposition."""

from collections.abc import Mapping
from typing import Any, ClassVar

import keras

from keras_ortho.activations import PAPER_LEAKY_RELU
from keras_ortho.cells.base import RecurrentCell
from keras_ortho.cells.layer import RecurrentLayer
from keras_ortho.parametrizations.svd import SVD


@keras.saving.register_keras_serializable(package="keras_ortho")
class SVDRNNCell(RecurrentCell):
    """Cell of the svdRNN (Spectral-RNN).

    One step is `h' = f(x U + h W + b)` with leaky ReLU `f` and
    `W = L diag(sigma) R^T`. `L` and `R` are products of Householder reflectors; the
    singular values `sigma` lie in the open interval `(spectral_center -
    spectral_margin, spectral_center + spectral_margin)`. All are trained without a
    constraint. Inside a recurrent layer `W` is made once for a sequence, not at every
    step.

    The paper writes `U diag(sigma) V^T` for column vectors: its `U` is `R` here, its
    `V` is `L`.

    Args:
        units: Number of units `n`, a positive integer.
        reflections: Number of reflectors of `L` and of `R`, an int in `1 .. n` for
            both or a pair. With all of them every matrix whose singular values lie
            in the interval can be made. Default: `None`, all.
        spectral_margin: How far the singular values may lie from the center, at
            least 0; with 0 they are not trained. Default: 0.01.
        spectral_center: Center of their interval, more than 0, where they start.
            Default: 1.
        activation: Activation of `x U + h W + b`. Default: leaky ReLU,
            `keras_ortho.activations.LeakyReLU(0.1)`, whose slope the paper does not
            tell.
        recurrent_initializer: Initializer of the reflectors of `L`, and with the
            next seed of `R`, which are then scaled to the length 1; the singular
            values start at the center. Or, with all reflectors, any initializer of
            Keras that yields a matrix, or an array, with singular values in their
            interval, such as `"orthogonal"`, taken through the inverse map. Default:
            `"uniform_reflectors"`.
        **kwargs: The arguments of every cell, see `keras_ortho.RecurrentCell`.

    Weights:
        Those of every cell; `left_reflectors` and `right_reflectors`, packed with the
        longest first, of shape `(k n - k (k - 1) / 2,)` for `k` reflectors;
        `singular_logits` of shape `(n,)`.

    Example:
    >>> keras.layers.RNN(SVDRNNCell(128, reflections=16))(np.zeros((32, 100, 1))).shape
    (32, 128)

    Reference:

    - [Zhang et al., 2018](https://proceedings.mlr.press/v80/zhang18g.html)
    """

    default_arguments: ClassVar[Mapping[str, Any]] = {
        "activation": PAPER_LEAKY_RELU,
        "recurrent_initializer": "uniform_reflectors",
    }

    def __init__(
        self,
        units: int,
        reflections: int | tuple[int, int] | None = None,
        spectral_margin: float = 0.01,
        spectral_center: float = 1.0,
        **kwargs: Any,
    ) -> None:
        kwargs = {**self.default_arguments, **kwargs}
        parametrization = SVD(reflections, spectral_margin, spectral_center)
        super().__init__(units, parametrization=parametrization, **kwargs)
        self.reflections = parametrization.reflections
        self.spectral_margin = parametrization.spectral_margin
        self.spectral_center = parametrization.spectral_center


@keras.saving.register_keras_serializable(package="keras_ortho")
class SVDRNN(RecurrentLayer):
    """The svdRNN (Spectral-RNN), `SVDRNNCell` over a sequence.

    Args:
        units: Number of units `n`, a positive integer.
        reflections: Number of reflectors of the left and of the right factor, an int
            for both or a pair. Default: `None`, all.
        spectral_margin: How far the singular values may lie from the center.
            Default: 0.01.
        spectral_center: Center of their interval. Default: 1.
        **kwargs: Other arguments of `SVDRNNCell` and `keras_ortho.RecurrentLayer`.

    Example:
    >>> SVDRNN(128, reflections=16, return_sequences=True)(np.zeros((32, 100, 1))).shape
    (32, 100, 128)

    Reference:

    - [Zhang et al., 2018](https://proceedings.mlr.press/v80/zhang18g.html)
    """

    cell_class = SVDRNNCell
