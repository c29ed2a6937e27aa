"""nnRNN: the non-normal recurrent neural network."""

from collections.abc import Mapping
from typing import Any, ClassVar

import keras

from keras_ortho import initializers
from keras_ortho.cells.base import RecurrentCell
from keras_ortho.cells.layer import RecurrentLayer
from keras_ortho.parametrizations.base import FreeVariable
from keras_ortho.parametrizations.schur import RealSchur


@keras.saving.register_keras_serializable(package="keras_ortho")
class NNRNNCell(RecurrentCell):
    """Cell of the non-normal RNN (nnRNN).

    One step is `h' = modReLU(x U + h W)` with the real Schur form
    `W = P (Theta + T) P^T`: an orthogonal `P`, 2 x 2 blocks `Theta` that rotate by
    `t_j` and scale by `gamma_j`, and a strictly upper triangular `T`. With `T = 0`
    and `gamma_j = 1` the matrix is orthogonal; `T` lets it be any real one. Inside
    a recurrent layer `W` is made once for a sequence, not at every step.

    Args:
        units: Number of units `n`, a positive integer.
        map: How `P` is made from a skew-symmetric matrix `A`: `"exponential"`,
            `exp(A)`, as in the paper, or `"cayley"`, `(I + A)^-1 (I - A)`, which
            costs less and reaches the same matrices but those with an eigenvalue
            -1, which `W` does not need. Default: `"exponential"`.
        recurrent_initializer: Initializer of the free entries of `A`. Or any
            initializer of Keras that yields a matrix, orthogonal or not, or an
            array, taken through the inverse map, which needs SciPy (the extra
            `linalg`). Default: `"henaff_skew"`, as scoRNN's.
        angles_initializer: Initializer of the `t_j`. Default: `"uniform_phases"`,
            all around the circle.
        radii_initializer: Initializer of the `gamma_j`. Default: `"ones"`.
        upper_initializer: Initializer of `T`. Default: `"zeros"`.
        bias_initializer: Initializer of the bias. Default: `"small_uniform"`,
            uniform on (-0.01, 0.01).
        kernel_initializer: Initializer of `U`. Default: `"glorot_normal"`.
        radii_regularizer: Regularizer of the `gamma_j`, in place of
            `recurrent_regularizer`; the paper's penalty is
            `keras_ortho.regularizers.UnitRadii`. Default: `None`, the same as of the
            other free variables.
        upper_regularizer: Regularizer of `T`, in place of `recurrent_regularizer`;
            the authors use a weight decay. Default: `None`, the same as of the other
            free variables.
        **kwargs: The arguments of every cell, see `keras_ortho.RecurrentCell`.

    Weights:
        Those of every cell; `recurrent_skew` and `schur_upper`, the free entries of `A`
        and of `T` in row order, of shape `(n (n - 1) / 2,)`; `schur_radii` of shape
        `(ceil(n / 2),)`, where the last of an odd order is an entry by itself;
        `schur_angles` of shape `(floor(n / 2),)`.

    Example:
    >>> cell = NNRNNCell(128, radii_regularizer=regularizers.UnitRadii(0.1))
    >>> keras.layers.RNN(cell)(np.zeros((32, 100, 1))).shape
    (32, 128)

    Reference:

    - [Kerg et al., 2019](https://arxiv.org/abs/1905.12080)
    """

    default_arguments: ClassVar[Mapping[str, Any]] = {
        "kernel_initializer": "glorot_normal",
        "recurrent_initializer": "henaff_skew",
        "bias_initializer": "small_uniform",
    }

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
        **kwargs: Any,
    ) -> None:
        kwargs = {**self.default_arguments, **kwargs}
        parametrization = RealSchur(map)
        super().__init__(units, parametrization=parametrization, **kwargs)
        self.map = map
        self.angles_initializer = initializers.get(angles_initializer)
        self.radii_initializer = initializers.get(radii_initializer)
        self.upper_initializer = initializers.get(upper_initializer)
        # Only now: an initializer without a seed draws one, in the order of arguments.
        parametrization.angles_initializer = self.angles_initializer
        parametrization.radii_initializer = self.radii_initializer
        parametrization.upper_initializer = self.upper_initializer
        self.radii_regularizer = keras.regularizers.get(radii_regularizer)
        self.upper_regularizer = keras.regularizers.get(upper_regularizer)

    def regularizer_of(self, variable: FreeVariable) -> Any:
        """Chooses the regularizer of a free variable, by its name."""
        own = {
            "schur_radii": self.radii_regularizer,
            "schur_upper": self.upper_regularizer,
        }
        return own.get(variable.name) or self.recurrent_regularizer


@keras.saving.register_keras_serializable(package="keras_ortho")
class NNRNN(RecurrentLayer):
    """The non-normal RNN (nnRNN), `NNRNNCell` over a sequence.

    Args:
        units: Number of units `n`, a positive integer.
        map: How the orthogonal factor is made, `"exponential"` or `"cayley"`.
            Default: `"exponential"`.
        **kwargs: Other arguments of `NNRNNCell` and `keras_ortho.RecurrentLayer`.

    Example:
    >>> NNRNN(128, map="cayley", return_sequences=True)(np.zeros((32, 100, 1))).shape
    (32, 100, 128)

    Reference:

    - [Kerg et al., 2019](https://arxiv.org/abs/1905.12080)
    """

    cell_class = NNRNNCell
