"""scuRNN: the scaled Cayley unitary recurrent neural network."""

from typing import Unpack

import keras

from keras_ortho.cells.cell import SMOOTHED, CellArguments, RecurrentCell
from keras_ortho.cells.layer import LayerArguments, RecurrentLayer
from keras_ortho.parametrizations.cayley import ScaledCayleyUnitary
from keras_ortho.parametrizations.wrappers import in_heads, rebased

__all__ = ["ScuRNN", "ScuRNNCell"]


@keras.saving.register_keras_serializable(package="keras_ortho")
class ScuRNNCell(RecurrentCell):
    """Cell of `ScuRNN`, which describes its step, arguments and weights.

    Args:
        units, heads, mix_inputs, rebase_every: As for `ScuRNN`.
        **kwargs: Arguments of `keras_ortho.RecurrentCell`.

    Example:
    >>> keras.layers.RNN(ScuRNNCell(116))(np.zeros((32, 100, 1))).shape
    (32, 232)
    """

    complex_state = True
    paper_arguments = SMOOTHED

    def __init__(
        self,
        units: int,
        *,
        heads: int = 1,
        mix_inputs: bool = True,
        rebase_every: int | None = None,
        **kwargs: Unpack[CellArguments],
    ) -> None:
        kwargs.setdefault("recurrent_initializer", "henaff_skew")
        kwargs.setdefault("bias_initializer", "small_uniform")
        kwargs.setdefault("trainable_initial_state", True)
        kind = rebased(ScaledCayleyUnitary(), rebase_every)
        super().__init__(units, in_heads(kind, heads, mix_inputs), **kwargs)
        self.heads = heads
        self.mix_inputs = mix_inputs
        self.rebase_every = rebase_every


@keras.saving.register_keras_serializable(package="keras_ortho")
class ScuRNN(RecurrentLayer):
    """Scaled Cayley unitary RNN layer: runs `ScuRNNCell` over a sequence.

    Each step computes `h' = modReLU(x U + h W)` with `n` complex units, stored as `2n`
    real numbers, and the unitary matrix `W = (I + A)^-1 (I - A) D`. The entries of the
    skew-Hermitian `A` and the phases of the diagonal `D` are trained without
    constraints: unlike scoRNN's signs, the phases need not be chosen.

    Args:
        units: Number of complex units `n`, a positive integer.
        heads, mix_inputs: As for `ScoRNN`. The blocks of `kernel` have `2n / heads`
            columns. Default: 1 and `True`.
        rebase_every: As for `ScoRNN`. Default: `None`.
        recurrent_initializer: Initializer for the free entries of `Re A`, with zero as
            `Im A` and phases uniform on (0, 2 pi), or for an orthogonal `W`, or a
            unitary array. Default: `"henaff_skew"`.
        bias_initializer: Initializer for the bias. Default: `"small_uniform"`.
        trainable_initial_state: Whether the initial state is trained. At zero, the
            gradient of modReLU can grow without bound where the first inputs are zero.
            Default: `True`.
        **kwargs: Arguments of `keras_ortho.RecurrentCell` and `RecurrentLayer`.

    Weights:
        Those of all cells; `recurrent_skew_real`, the strict upper triangle of `Re A`
        in row order, of shape `(n (n - 1) / 2,)`; `recurrent_skew_imag`, the upper
        triangle of `Im A` with its diagonal, of shape `(n (n + 1) / 2,)`;
        `recurrent_phases` of shape `(n,)`, in radians; with heads or a base, those of
        `Heads` or `Rebased`.

    Example:
    >>> ScuRNN(116, return_sequences=True)(np.zeros((32, 100, 1))).shape
    (32, 100, 232)

    Reference:
    [Maduranga et al., 2019](https://arxiv.org/abs/1811.04142)
    """

    cell_class = ScuRNNCell

    def __init__(
        self,
        units: int,
        *,
        heads: int = 1,
        mix_inputs: bool = True,
        rebase_every: int | None = None,
        **kwargs: Unpack[LayerArguments],
    ) -> None:
        super().__init__(
            units,
            heads=heads,
            mix_inputs=mix_inputs,
            rebase_every=rebase_every,
            **kwargs,
        )
