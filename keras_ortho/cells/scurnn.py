"""scuRNN: the scaled Cayley unitary recurrent neural network."""

from collections.abc import Mapping
from typing import Any, ClassVar

import keras

from keras_ortho.cells.base import RecurrentCell
from keras_ortho.cells.layer import RecurrentLayer
from keras_ortho.parametrizations.cayley_unitary import ScaledCayleyUnitary
from keras_ortho.parametrizations.heads import in_heads
from keras_ortho.parametrizations.rebased import rebased


@keras.saving.register_keras_serializable(package="keras_ortho")
class ScuRNNCell(RecurrentCell):
    """Cell of the scaled Cayley unitary RNN (scuRNN).

    One step is `h' = modReLU(x U + h W)` of `n` complex units, with the unitary matrix
    `W = (I + A)^-1 (I - A) D`. The entries of the skew-Hermitian `A` and the phases of
    the diagonal `D` are trained, without a constraint: unlike scoRNN's signs, which
    fix the determinant, the phases need no choice. Inside a recurrent layer `W` is
    made once for a sequence, not at every step.

    State and output are `2n` reals, the real parts first.

    Args:
        units: Number of complex units `n`, a positive integer.
        heads: Number of blocks on the diagonal of `W`, each unitary and trained by
            itself, with zeros beside them; a divisor of `n`. For large `n`: a step
            costs `4 n^2 / heads` multiplications. See
            `keras_ortho.parametrizations.Heads`. Default: 1.
        mix_inputs: Whether every head reads all inputs. Otherwise each reads its part
            of them: the number of inputs must be a multiple of the heads, and `kernel`
            is of blocks, of shape `(heads, m / heads, 2n / heads)`. Default: `True`.
        rebase_every: After how many passes of training a base matrix moves to `W`, a
            positive integer: see `keras_ortho.parametrizations.Rebased`. Default:
            `None`, there is no base.
        recurrent_initializer: Initializer of the free entries of `Re A`; `Im A` is then
            zero, and the phases are uniform on (0, 2 pi). Or any initializer of Keras
            that yields an orthogonal matrix, such as `"orthogonal"` or `"identity"`,
            or an array: real orthogonal or complex unitary of shape `(n, n)`, or of
            shape `(2n, 2n)` as `recurrent_matrix` returns it, taken through the
            inverse map. Default: `"henaff_skew"`.
        bias_initializer: Initializer of the bias. Default: `"small_uniform"`.
        trainable_initial_state: Whether the initial state is trained. A fixed
            zero lets the gradient of modReLU grow without bound where an input is
            zero at the start and the bias positive. Default: `True`.
        **kwargs: The arguments of every cell, see `keras_ortho.RecurrentCell`.

    Weights:
        Those of every cell; `recurrent_skew_real`, the strict upper triangle of `Re A`
        in row order, of shape `(n (n - 1) / 2,)`; `recurrent_skew_imag`, the upper
        triangle of `Im A` with its diagonal, of shape `(n (n + 1) / 2,)`;
        `recurrent_phases` of shape `(n,)`, in radians; with heads or a base those of
        `Heads` or `Rebased`.

    Example:
    >>> keras.layers.RNN(ScuRNNCell(116))(np.zeros((32, 100, 1))).shape
    (32, 232)

    Reference:

    - [Maduranga et al., 2019](https://arxiv.org/abs/1811.04142)
    """

    complex_state = True
    default_arguments: ClassVar[Mapping[str, Any]] = {
        "recurrent_initializer": "henaff_skew",
        "bias_initializer": "small_uniform",
        "trainable_initial_state": True,
    }
    # With the guard at zero of the authors' code.
    paper_arguments: ClassVar[Mapping[str, Any]] = {"activation": "smoothed_modrelu"}

    def __init__(
        self,
        units: int,
        *,
        heads: int = 1,
        mix_inputs: bool = True,
        rebase_every: int | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs = {**self.default_arguments, **kwargs}
        kind = rebased(ScaledCayleyUnitary(), rebase_every)
        parametrization = in_heads(kind, heads, mix_inputs)
        super().__init__(units, parametrization=parametrization, **kwargs)
        self.heads = heads
        self.mix_inputs = mix_inputs
        self.rebase_every = rebase_every


@keras.saving.register_keras_serializable(package="keras_ortho")
class ScuRNN(RecurrentLayer):
    """The scaled Cayley unitary RNN (scuRNN), `ScuRNNCell` over a sequence.

    Args:
        units: Number of complex units `n`, a positive integer.
        **kwargs: Other arguments of `ScuRNNCell` and `keras_ortho.RecurrentLayer`.

    Example:
    >>> ScuRNN(116, return_sequences=True)(np.zeros((32, 100, 1))).shape
    (32, 100, 232)

    Reference:

    - [Maduranga et al., 2019](https://arxiv.org/abs/1811.04142)
    """

    cell_class = ScuRNNCell
