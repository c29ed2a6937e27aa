"""nnRNN: the non-normal recurrent neural network."""

from typing import Any, Unpack

import keras

from keras_ortho.cells.cell import CellArguments, RecurrentCell
from keras_ortho.cells.layer import LayerArguments, RecurrentLayer
from keras_ortho.parametrizations.base import FreeVariable
from keras_ortho.parametrizations.schur import RealSchur

__all__ = ["NNRNN", "NNRNNCell"]


@keras.saving.register_keras_serializable(package="keras_ortho")
class NNRNNCell(RecurrentCell):
    """Cell of `NNRNN`, which describes its step, arguments and weights.

    Args:
        units, map, angles_initializer, radii_initializer: As for `NNRNN`.
        upper_initializer, radii_regularizer, upper_regularizer: As for `NNRNN`.
        **kwargs: Arguments of `keras_ortho.RecurrentCell`.

    Example:
    >>> keras.layers.RNN(NNRNNCell(128))(np.zeros((32, 100, 1))).shape
    (32, 128)
    """

    def __init__(
        self,
        units: int,
        map: str = "exponential",
        *,
        angles_initializer: Any = "uniform_phases",
        radii_initializer: Any = "ones",
        upper_initializer: Any = "zeros",
        radii_regularizer: Any = None,
        upper_regularizer: Any = None,
        **kwargs: Unpack[CellArguments],
    ) -> None:
        kwargs.setdefault("kernel_initializer", "glorot_normal")
        kwargs.setdefault("recurrent_initializer", "henaff_skew")
        kwargs.setdefault("bias_initializer", "small_uniform")
        schur = RealSchur(map, angles_initializer, radii_initializer, upper_initializer)
        super().__init__(units, schur, **kwargs)
        self.map = map
        self.angles_initializer = schur.angles_initializer
        self.radii_initializer = schur.radii_initializer
        self.upper_initializer = schur.upper_initializer
        self.radii_regularizer = keras.regularizers.get(radii_regularizer)
        self.upper_regularizer = keras.regularizers.get(upper_regularizer)

    def regularizer_of(self, variable: FreeVariable) -> Any:
        """Returns the regularizer for a free variable, by its name."""
        own = {
            "schur_radii": self.radii_regularizer,
            "schur_upper": self.upper_regularizer,
        }
        return own.get(variable.name) or self.recurrent_regularizer


@keras.saving.register_keras_serializable(package="keras_ortho")
class NNRNN(RecurrentLayer):
    """Non-normal RNN layer: runs `NNRNNCell` over a sequence.

    Each step computes `h' = modReLU(x U + h W)` with the real Schur form
    `W = P (Theta + T) P^T`: an orthogonal `P`, 2 x 2 blocks `Theta` that rotate by
    `t_j` and scale by `gamma_j`, and a strictly upper triangular `T`. With `T = 0`
    and `gamma_j = 1`, `W` is orthogonal; with `T`, it can be any real matrix.

    Args:
        units: Number of units `n`, a positive integer.
        map: How `P` is made from a skew-symmetric matrix `A`: `"exponential"`,
            `exp(A)`, as in the paper, or `"cayley"`, `(I + A)^-1 (I - A)`, which costs
            less and reaches the same `W`. Default: `"exponential"`.
        recurrent_initializer: Initializer for the free entries of `A`, or for `W`: any
            matrix, orthogonal or not, which requires SciPy (the extra `linalg`).
            Default: `"henaff_skew"`, as in scoRNN.
        angles_initializer: Initializer for the `t_j`. Default: `"uniform_phases"`,
            uniform on (-pi, pi).
        radii_initializer: Initializer for the `gamma_j`. Default: `"ones"`.
        upper_initializer: Initializer for `T`. Default: `"zeros"`.
        bias_initializer: Initializer for the bias. Default: `"small_uniform"`.
        kernel_initializer: Initializer for `U`. Default: `"glorot_normal"`.
        radii_regularizer, upper_regularizer: Regularizers for the `gamma_j`, in the
            paper `keras_ortho.regularizers.UnitRadii`, and for `T`, with the authors
            weight decay. Default: `None`, which means `recurrent_regularizer`.
        **kwargs: Arguments of `keras_ortho.RecurrentCell` and `RecurrentLayer`.

    Weights:
        Those of all cells; `recurrent_skew` and `schur_upper`, the free entries of `A`
        and of `T` in row order, of shape `(n (n - 1) / 2,)`; `schur_radii` of shape
        `(ceil(n / 2),)`, whose last entry is a 1 x 1 block if `n` is odd;
        `schur_angles` of shape `(floor(n / 2),)`.

    Example:
    >>> NNRNN(128, map="cayley", return_sequences=True)(np.zeros((32, 100, 1))).shape
    (32, 100, 128)

    Reference:
    [Kerg et al., 2019](https://arxiv.org/abs/1905.12080)
    """

    cell_class = NNRNNCell

    def __init__(
        self,
        units: int,
        map: str = "exponential",
        *,
        angles_initializer: Any = "uniform_phases",
        radii_initializer: Any = "ones",
        upper_initializer: Any = "zeros",
        radii_regularizer: Any = None,
        upper_regularizer: Any = None,
        **kwargs: Unpack[LayerArguments],
    ) -> None:
        super().__init__(
            units,
            map,
            angles_initializer=angles_initializer,
            radii_initializer=radii_initializer,
            upper_initializer=upper_initializer,
            radii_regularizer=radii_regularizer,
            upper_regularizer=upper_regularizer,
            **kwargs,
        )
