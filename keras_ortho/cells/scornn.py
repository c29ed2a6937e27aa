"""scoRNN: the scaled Cayley orthogonal recurrent neural network."""

from typing import Unpack

import keras
import numpy as np

from keras_ortho import checks
from keras_ortho.cells.cell import SMALL_KERNEL, CellArguments, RecurrentCell
from keras_ortho.cells.layer import LayerArguments, RecurrentLayer
from keras_ortho.parametrizations.cayley import ScaledCayley, scaled_cayley
from keras_ortho.parametrizations.wrappers import in_heads, rebased

__all__ = ["ScoRNN", "ScoRNNCell"]


@keras.saving.register_keras_serializable(package="keras_ortho")
class ScoRNNCell(RecurrentCell):
    """Cell of `ScoRNN`, which describes its step, arguments and weights.

    Args:
        units, negative_ones, heads, mix_inputs, rebase_every: As for `ScoRNN`.
        **kwargs: Arguments of `keras_ortho.RecurrentCell`.

    Example:
    >>> keras.layers.RNN(ScoRNNCell(170))(np.zeros((32, 100, 1))).shape
    (32, 170)
    """

    paper_arguments = SMALL_KERNEL

    def __init__(
        self,
        units: int,
        negative_ones: int | float = 0.5,
        *,
        heads: int = 1,
        mix_inputs: bool = True,
        rebase_every: int | None = None,
        **kwargs: Unpack[CellArguments],
    ) -> None:
        kwargs.setdefault("recurrent_initializer", "henaff_skew")
        rotations = rebased(ScaledCayley(negative_ones), rebase_every)
        super().__init__(units, in_heads(rotations, heads, mix_inputs), **kwargs)
        self.negative_ones = negative_ones
        self.heads = heads
        self.mix_inputs = mix_inputs
        self.rebase_every = rebase_every

    def set_author_weights(
        self,
        A: np.ndarray,
        D: np.ndarray,
        U: np.ndarray | None = None,
        b: np.ndarray | None = None,
    ) -> None:
        """Sets the weights from the matrices of the authors' released code.

        Args:
            A: Array of shape `(n, n)`, skew-symmetric up to float32 rounding.
            D: Diagonal of signs, of shape `(n,)` or `(n, n)`.
            U: Input kernel, of the shape of `kernel`. Default: `None`, not changed.
            b: Bias of modReLU, of shape `(n,)`. Default: `None`, not changed.

        Raises:
            ValueError: If the cell is not built, an array has the wrong shape, `A` is
                not skew-symmetric, or `D` has entries other than signs. No weight has
                then changed.

        Example:
        >>> cell = ScoRNNCell(2)
        >>> cell.build((None, 1))
        >>> cell.set_author_weights(A=np.array([[0, 1], [-1, 0]]), D=np.ones(2))
        """
        checks.check_built(self)
        n, A, D = self.units, np.asarray(A, "float64"), np.asarray(D, "float64")
        D = np.diag(D) if D.ndim == 2 else D
        checks.check_shape("A", A, (n, n))
        checks.check_shape("D", D, (n,))
        # The authors' matrix is skew-symmetric up to rounding.
        rounding = n * np.finfo("float32").eps * np.abs(A).max()
        if not np.abs(A + A.T).max() <= rounding:
            raise ValueError(
                "`A` must be skew-symmetric. Received: a matrix with "
                f"max |A + A^T| = {np.abs(A + A.T).max()}"
            )
        if np.any(np.abs(D) != 1):
            raise ValueError(f"The entries of `D` must be 1 or -1. Received: D={D}")
        if U is not None:
            checks.check_shape("U", np.asarray(U), tuple(self.kernel.shape))
        if b is not None:
            own = (n,) if self.use_bias else ()
            checks.check_shape("b", np.asarray(b), own)
        entries = A[np.triu_indices(n, 1)]
        if self.rebase_every is None and self.heads == 1 and not self.frozen:
            self.recurrent_skew.assign(entries)
            self.recurrent_signs.assign(D)
        else:
            self.set_recurrent_matrix(scaled_cayley(entries, D))
        if U is not None:
            self.kernel.assign(U)
        if b is not None:
            self.bias.assign(b)


@keras.saving.register_keras_serializable(package="keras_ortho")
class ScoRNN(RecurrentLayer):
    """Scaled Cayley orthogonal RNN layer: runs `ScoRNNCell` over a sequence.

    Each step computes `h' = modReLU(x U + h W)` with the orthogonal matrix
    `W = (I + A)^-1 (I - A) D`. The strict upper triangle of the skew-symmetric
    `A` is trained without constraints; `D` is a diagonal of fixed signs.

    Args:
        units: Number of units `n`, a positive integer.
        negative_ones: How many entries of `D`, the last ones, are -1: an int is a
            count, a float a fraction of the units, or of each head. The paper uses a
            half for copying and permuted pixels, a half or more for adding, and a tenth
            for pixels in order and for speech. Not used if `recurrent_initializer`
            returns a matrix. Default: 0.5.
        heads: Number of diagonal blocks of `W`, a divisor of `n`, see
            `keras_ortho.parametrizations.Heads`. Default: 1.
        mix_inputs: Whether every head reads all inputs, rather than its own part of
            them. In that case, `kernel` is `(heads, m / heads, n / heads)`. Default:
            `True`.
        rebase_every: Number of training passes after which a base matrix moves to `W`,
            see `keras_ortho.parametrizations.Rebased`. Default: `None`, no base.
        recurrent_initializer: Initializer for the free entries of `A`, or for an
            orthogonal `W`, such as `"orthogonal"`, `"identity"` or an array. Default:
            `"henaff_skew"`, rotations by angles uniform on (0, pi / 2).
        **kwargs: Arguments of `keras_ortho.RecurrentCell` and `RecurrentLayer`.

    Weights:
        Those of all cells; `recurrent_skew`, the free entries in row order, of shape
        `(n (n - 1) / 2,)`; `recurrent_signs`, not trained, of shape `(n,)`; with heads
        or a base, those of `Heads` or `Rebased`.

    Example:
    >>> layer = ScoRNN(170, negative_ones=85, return_sequences=True)
    >>> layer(np.zeros((32, 100, 1))).shape
    (32, 100, 170)

    Reference:
    [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html)
    """

    cell_class = ScoRNNCell

    def __init__(
        self,
        units: int,
        negative_ones: int | float = 0.5,
        *,
        heads: int = 1,
        mix_inputs: bool = True,
        rebase_every: int | None = None,
        **kwargs: Unpack[LayerArguments],
    ) -> None:
        super().__init__(
            units,
            negative_ones,
            heads=heads,
            mix_inputs=mix_inputs,
            rebase_every=rebase_every,
            **kwargs,
        )
