"""svdRNN: a recurrent matrix parametrized by its singular value decomposition."""

from typing import Unpack

import keras

from keras_ortho.activations import PAPER_LEAKY_RELU
from keras_ortho.cells.cell import CellArguments, RecurrentCell
from keras_ortho.cells.layer import LayerArguments, RecurrentLayer
from keras_ortho.parametrizations.svd import SVD

__all__ = ["SVDRNN", "SVDRNNCell"]


@keras.saving.register_keras_serializable(package="keras_ortho")
class SVDRNNCell(RecurrentCell):
    """Cell of `SVDRNN`, which describes its step, arguments and weights.

    Args:
        units, reflections, spectral_margin, spectral_center: As for `SVDRNN`.
        **kwargs: Arguments of `keras_ortho.RecurrentCell`.

    Example:
    >>> keras.layers.RNN(SVDRNNCell(128, reflections=16))(np.zeros((32, 100, 1))).shape
    (32, 128)
    """

    def __init__(
        self,
        units: int,
        reflections: int | tuple[int, int] | None = None,
        spectral_margin: float = 0.01,
        spectral_center: float = 1.0,
        **kwargs: Unpack[CellArguments],
    ) -> None:
        kwargs.setdefault("activation", PAPER_LEAKY_RELU)
        kwargs.setdefault("recurrent_initializer", "uniform_reflectors")
        parametrization = SVD(reflections, spectral_margin, spectral_center)
        super().__init__(units, parametrization, **kwargs)
        self.reflections = parametrization.reflections
        self.spectral_margin = parametrization.spectral_margin
        self.spectral_center = parametrization.spectral_center


@keras.saving.register_keras_serializable(package="keras_ortho")
class SVDRNN(RecurrentLayer):
    """svdRNN (Spectral-RNN) layer: runs `SVDRNNCell` over a sequence.

    Each step computes `h' = f(x U + h W + b)` with leaky ReLU `f` and
    `W = L diag(sigma) R^T`. `L` and `R` are products of Householder reflectors; the
    singular values `sigma` lie in the open interval
    `(spectral_center - spectral_margin, spectral_center + spectral_margin)`. All of
    these are trained without constraints. The paper writes `U diag(sigma) V^T` for
    column vectors: its `U` is `R` here, its `V` is `L`.

    Args:
        units: Number of units `n`, a positive integer.
        reflections: Number of reflectors of `L` and of `R`, an int in `1 .. n` for
            both, or a pair. With all reflectors, every matrix whose singular values lie
            in the interval can be reached. Default: `None`, all.
        spectral_margin: Largest distance of a singular value from the center, at
            least 0. With 0, the singular values are not trained. Default: 0.01.
        spectral_center: Center of the interval of the singular values and their
            initial value, more than 0. Default: 1.
        activation: Default: `keras_ortho.activations.LeakyReLU(0.1)`; the paper states
            no slope.
        recurrent_initializer: Initializer for the reflectors of `L` and, with the
            next seed, of `R`, which are then scaled to length 1. With all reflectors,
            also one for `W`, such as `"orthogonal"`. Default: `"uniform_reflectors"`.
        **kwargs: Arguments of `keras_ortho.RecurrentCell` and `RecurrentLayer`.

    Weights:
        Those of all cells; `left_reflectors` and `right_reflectors`, packed with the
        longest first, of shape `(k n - k (k - 1) / 2,)` for `k` reflectors;
        `singular_logits` of shape `(n,)`.

    Example:
    >>> SVDRNN(128, reflections=16, return_sequences=True)(np.zeros((32, 100, 1))).shape
    (32, 100, 128)

    Reference:
    [Zhang et al., 2018](https://proceedings.mlr.press/v80/zhang18g.html)
    """

    cell_class = SVDRNNCell

    def __init__(
        self,
        units: int,
        reflections: int | tuple[int, int] | None = None,
        spectral_margin: float = 0.01,
        spectral_center: float = 1.0,
        **kwargs: Unpack[LayerArguments],
    ) -> None:
        super().__init__(units, reflections, spectral_margin, spectral_center, **kwargs)
