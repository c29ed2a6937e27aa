"""The factorized RNN: a bounded spectrum between two orthogonal matrices."""

from typing import Unpack

import keras

from keras_ortho.activations import PAPER_LEAKY_RELU
from keras_ortho.cells.cell import CellArguments, RecurrentCell
from keras_ortho.cells.layer import LayerArguments, RecurrentLayer
from keras_ortho.parametrizations.svd import FactorizedCayley

__all__ = ["FactorizedRNN", "FactorizedRNNCell"]


@keras.saving.register_keras_serializable(package="keras_ortho")
class FactorizedRNNCell(RecurrentCell):
    """Cell of `FactorizedRNN`, which describes its step, arguments and weights.

    Args:
        units, spectral_margin, spectral_center: As for `FactorizedRNN`.
        **kwargs: Arguments of `keras_ortho.RecurrentCell`.

    Example:
    >>> keras.layers.RNN(FactorizedRNNCell(128))(np.zeros((32, 100, 1))).shape
    (32, 128)
    """

    def __init__(
        self,
        units: int,
        spectral_margin: float = 0.1,
        spectral_center: float = 1.0,
        **kwargs: Unpack[CellArguments],
    ) -> None:
        kwargs.setdefault("activation", PAPER_LEAKY_RELU)
        kwargs.setdefault("recurrent_initializer", "henaff_skew")
        parametrization = FactorizedCayley(spectral_margin, spectral_center)
        super().__init__(units, parametrization, **kwargs)
        self.spectral_margin = parametrization.spectral_margin
        self.spectral_center = parametrization.spectral_center


@keras.saving.register_keras_serializable(package="keras_ortho")
class FactorizedRNN(RecurrentLayer):
    """Factorized RNN layer: runs `FactorizedRNNCell` over a sequence.

    Each step computes `h' = f(x U + h W + b)` with `W = L diag(sigma) R^T`. The
    orthogonal matrices `L` and `R` are scaled Cayley transforms
    `(I + A)^-1 (I - A) D`; the singular values `sigma` lie in the open interval
    `(spectral_center - spectral_margin, spectral_center + spectral_margin)`. All of
    these except the fixed signs `D` are trained, without constraints. The paper instead
    keeps `L` and `R` orthogonal by an optimizer that steps along Cayley transforms.

    Args:
        units: Number of units `n`, a positive integer.
        spectral_margin: Largest distance of a singular value from the center, at
            least 0. With 0, the singular values are not trained. Default: 0.1.
        spectral_center: Center of the interval of the singular values and their
            initial value, more than 0. Default: 1.
        activation: Default: `keras_ortho.activations.LeakyReLU(0.1)`.
        recurrent_initializer: Initializer for the free entries of `L`, with the
            identity as `R`, or for `W`, such as `"orthogonal"`. Default:
            `"henaff_skew"`, rotations by angles uniform on (0, pi / 2).
        **kwargs: Arguments of `keras_ortho.RecurrentCell` and `RecurrentLayer`.

    Weights:
        Those of all cells; `left_skew` and `right_skew`, free entries in row order, of
        shape `(n (n - 1) / 2,)`; `left_signs` and `right_signs`, not trained, of shape
        `(n,)`; `singular_logits` of shape `(n,)`.

    Example:
    >>> FactorizedRNN(128, return_sequences=True)(np.zeros((32, 100, 1))).shape
    (32, 100, 128)

    Reference:
    [Vorontsov et al., 2017](https://proceedings.mlr.press/v70/vorontsov17a.html)
    """

    cell_class = FactorizedRNNCell

    def __init__(
        self,
        units: int,
        spectral_margin: float = 0.1,
        spectral_center: float = 1.0,
        **kwargs: Unpack[LayerArguments],
    ) -> None:
        super().__init__(units, spectral_margin, spectral_center, **kwargs)
