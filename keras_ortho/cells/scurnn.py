"""scuRNN: the scaled Cayley unitary recurrent neural network."""

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import keras

from keras_ortho.cells.cell import CellArguments, RecurrentCell
from keras_ortho.cells.layer import LayerArguments, RecurrentLayer
from keras_ortho.parametrizations.cayley_unitary import ScaledCayleyUnitary
from keras_ortho.parametrizations.heads import in_heads
from keras_ortho.parametrizations.rebased import rebased

__all__ = ["ScuRNN", "ScuRNNCell"]


@keras.saving.register_keras_serializable(package="keras_ortho")
class ScuRNNCell(RecurrentCell):
    """Cell class for the scaled Cayley unitary RNN (`ScuRNN`).

    Each step computes `h' = modReLU(x U + h W)` with `n` complex units and the unitary
    matrix `W = (I + A)^-1 (I - A) D`. The entries of the skew-Hermitian `A` and the
    phases of the diagonal `D` are trained without constraints: unlike scoRNN's signs,
    which fix the determinant, the phases need not be chosen. A recurrent layer
    computes `W` once per sequence, not at every step.

    The state and the output are stored as `2n` real numbers, the real parts first.

    Args:
        units: Number of complex units `n`, a positive integer.
        heads: Number of diagonal blocks of `W`, a divisor of `n`. Each block is
            unitary and has its own variables; all other entries are zero. Useful for
            large `n`: a step costs `4 n^2 / heads` multiplications. See
            `keras_ortho.parametrizations.Heads`. Default: 1.
        mix_inputs: Whether every head reads all inputs. Otherwise each head reads its
            own part of them: the number of inputs must be a multiple of the heads, and
            `kernel` consists of blocks, of shape `(heads, m / heads, 2n / heads)`.
            Default: `True`.
        rebase_every: Number of training passes after which a base matrix moves to `W`,
            a positive integer, see `keras_ortho.parametrizations.Rebased`. Default:
            `None`, no base.
        recurrent_initializer: Initializer for the free entries of `Re A`; `Im A` is
            then zero, and the phases are uniform on (0, 2 pi). Alternatively, any Keras
            initializer that returns an orthogonal matrix, such as `"orthogonal"` or
            `"identity"`, or an array: real orthogonal or complex unitary of shape
            `(n, n)`, or of shape `(2n, 2n)` as returned by `recurrent_matrix`,
            converted by the inverse map. Default: `"henaff_skew"`.
        bias_initializer: Initializer for the bias. Default: `"small_uniform"`.
        trainable_initial_state: Whether the initial state is trained. If it is
            fixed at zero, the gradient of modReLU can grow without bound where the
            first inputs are zero and the bias is positive. Default: `True`.
        **kwargs: Arguments of all cells, see `keras_ortho.RecurrentCell`.

    Weights:
        Those of all cells; `recurrent_skew_real`, the strict upper triangle of `Re A`
        in row order, of shape `(n (n - 1) / 2,)`; `recurrent_skew_imag`, the upper
        triangle of `Im A` with its diagonal, of shape `(n (n + 1) / 2,)`;
        `recurrent_phases` of shape `(n,)`, in radians; with heads or a base, those of
        `Heads` or `Rebased`.

    Example:
    >>> keras.layers.RNN(ScuRNNCell(116))(np.zeros((32, 100, 1))).shape
    (32, 232)

    Reference:

    - [Maduranga et al., 2019](https://arxiv.org/abs/1811.04142)
    """

    complex_state = True
    # Smoothed at zero, as in the authors' code.
    paper_arguments: ClassVar[Mapping[str, Any]] = {"activation": "smoothed_modrelu"}

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
        parametrization = in_heads(kind, heads, mix_inputs)
        super().__init__(units, parametrization=parametrization, **kwargs)
        self.heads = heads
        self.mix_inputs = mix_inputs
        self.rebase_every = rebase_every


@keras.saving.register_keras_serializable(package="keras_ortho")
class ScuRNN(RecurrentLayer):
    """Scaled Cayley unitary RNN layer: runs `ScuRNNCell` over a sequence.

    Args:
        units: Number of complex units `n`, a positive integer.
        heads: Number of diagonal blocks of `W`, a divisor of `n`. Default: 1.
        mix_inputs: Whether every head reads all inputs. Default: `True`.
        rebase_every: Number of training passes after which a base matrix moves to `W`.
            Default: `None`, no base.
        **kwargs: Arguments of all cells and layers, see `keras_ortho.RecurrentCell`
            and `keras_ortho.RecurrentLayer`.

    Example:
    >>> ScuRNN(116, return_sequences=True)(np.zeros((32, 100, 1))).shape
    (32, 100, 232)

    Reference:

    - [Maduranga et al., 2019](https://arxiv.org/abs/1811.04142)
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
